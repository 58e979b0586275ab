"""The distribution tree: upstreams, this hub, its relays, and its sites with their feeds."""

from collections import defaultdict
from collections.abc import Mapping

from downburst.domain.relays import Relay, SiteWay
from downburst.domain.sites import Site
from downburst.domain.upstreams import Upstream
from downburst.ledger import Transaction
from downburst.live.state import LiveState, SiteSession
from downburst_contract.latency import Tree, TreeFeed, TreeRelay, TreeSite, TreeUpstream


def tree_of(tx: Transaction, live: LiveState, *, name: str) -> Tree:
    """The tree as of now; a relay is no site in it."""
    relays = tx.fleet.relays.all()
    besides = {relay.name for relay in relays}
    sites = [site for site in tx.sites.all() if site.active and site.name not in besides]
    wanted, relayed = _wanted(tx, sites), _relayed(tx)
    ways = {way.site: way for way in tx.fleet.ways.all()}
    return Tree(
        hub=name,
        upstreams=[_upstream(one, live) for one in tx.fleet.upstreams.all()],
        relays=[_relay(one, live) for one in relays],
        sites=[_site(one, wanted[one.name], relayed, ways.get(one.name), live) for one in sites],
    )


def _wanted(tx: Transaction, sites: list[Site]) -> Mapping[str, list[str]]:
    """By site, the feeds that it takes."""
    allowed = {site.name: site for site in sites}
    wanted: defaultdict[str, list[str]] = defaultdict(list)
    for subscription in tx.subscriptions.all():
        site, feed = allowed.get(subscription.site), subscription.feed
        if site is not None and site.may_take(feed) and feed not in wanted[site.name]:
            wanted[site.name].append(feed)
    return wanted


def _relayed(tx: Transaction) -> Mapping[tuple[str, str], str]:
    """By feed and site, the relay that fans out the feed to the site, by the present plans."""
    legs = ((plan.feed, leg) for plan in tx.planning.plans.all_current() for leg in plan.legs)
    return {(feed, site): leg.relay for feed, leg in legs if leg.relay is not None for site in leg.sites}


def _upstream(upstream: Upstream, live: LiveState) -> TreeUpstream:
    link = live.upstreams.get(upstream.name)
    connected = bool(link and link.connected)
    return TreeUpstream(upstream=upstream.name, connected=connected, feeds=list(upstream.feeds))


def _relay(relay: Relay, live: LiveState) -> TreeRelay:
    return TreeRelay(relay=relay.name, connected=_connected(live.session(relay.name)), sites=list(relay.sites))


def _site(
    site: Site, feeds: list[str], relayed: Mapping[tuple[str, str], str], way: SiteWay | None, live: LiveState
) -> TreeSite:
    session = live.session(site.name)
    progress = session.progress if session is not None and session.connected else {}
    taken = [
        TreeFeed(
            feed=feed,
            transport=progress[feed].transport if feed in progress else None,
            relay=relayed.get((feed, site.name)),
        )
        for feed in sorted(feeds)
    ]
    return TreeSite(
        site=site.name,
        organisation=site.organisation,
        connected=_connected(session),
        via=list(way.chain) if way is not None else [],
        circuit=way.over.circuit if way is not None and way.over is not None else None,
        feeds=taken,
    )


def _connected(session: SiteSession | None) -> bool:
    return bool(session and session.connected)
