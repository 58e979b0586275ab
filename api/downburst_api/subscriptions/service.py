"""Changes to subscriptions: rights, patterns, and a site's share of the past."""

from datetime import datetime

from downburst.domain.access import Caller
from downburst.domain.events import SubscriptionsChanged
from downburst.domain.resends import Resend, ResendKind
from downburst.domain.subscriptions import IdFilter, Subscription
from downburst.foundation.errors import NotFound
from downburst.foundation.moments import moment
from downburst.ledger import Transaction
from downburst_api.border.site_rights import check_pattern, check_right
from downburst_api.http.etags import IfMatch
from downburst_api.runtime import Runtime
from downburst_contract import subscriptions as shapes


async def subscribe(hub: Runtime, caller: Caller, site: str, wanted: shapes.SubscriptionNew) -> Subscription:
    """Subscribes a site; one that begins in the past gets the log's products since then, except those it has."""
    await hub.ledger.read(lambda tx: check_right(tx, site, wanted.feed, caller))
    await check_pattern(hub.node, "pattern", wanted.pattern)
    if wanted.not_pattern is not None:
        await check_pattern(hub.node, "not_pattern", wanted.not_pattern)
    start = None if wanted.start == "now" else moment(wanted.start, hub.clock.now())
    subscription = Subscription(0, site, start_at=start, **wanted.model_dump(exclude={"start"}))
    kept = await hub.ledger.write(lambda tx: _keep(tx, subscription))
    await announce(hub)
    return kept


async def end(hub: Runtime, number: int, unchanged: IfMatch, *, site: str | None = None) -> None:
    """Ends a subscription, of this site if one is named."""

    def remove(tx: Transaction) -> None:
        known = tx.subscriptions.all() if site is None else tx.subscriptions.of_site(site)
        found = next((one for one in known if one.id == number), None)
        unchanged.check(f"subscription {number}", None if found is None else shapes.Subscription.of(found))
        if site is not None and found is None:
            name = tx.sites.one(site).name
            raise NotFound(
                f"site {name!r} has no subscription {number}; `downburst subscriptions list {name}` shows all"
            )
        tx.subscriptions.remove(number)

    await hub.ledger.write(remove)
    await announce(hub)


def _keep(tx: Transaction, subscription: Subscription) -> Subscription:
    check_right(tx, subscription.site, subscription.feed)
    had = [one for one in tx.subscriptions.of_site(subscription.site) if one.feed == subscription.feed]
    kept = tx.subscriptions.add(subscription)
    start, created_at = subscription.start_at, kept.created_at
    if start is not None and created_at is not None and start < created_at:
        tx.resends.add(_backfill(kept, start, created_at, had))
    return kept


def _backfill(subscription: Subscription, begin: datetime, end: datetime, had: list[Subscription]) -> Resend:
    return Resend(
        0,
        subscription.site,
        subscription.feed,
        begin,
        end,
        kind=ResendKind.BACKFILL,
        wanted=IdFilter(subscription.pattern, subscription.not_pattern),
        had=tuple(IdFilter(one.pattern, one.not_pattern) for one in had),
        requested_by=f"subscription {subscription.id}",
    )


async def announce(hub: Runtime) -> None:
    """Announces a change of subscriptions to the node and all other parts."""
    await hub.node.refresh()
    hub.bus.publish(SubscriptionsChanged())
