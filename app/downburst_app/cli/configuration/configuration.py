"""The configuration of a hub as a declaration: the present state, and the changes that lead to the declared one."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from downburst.foundation.errors import BadInput
from downburst_app.cli.client import HubClient
from downburst_app.cli.configuration import fleet, network, ordering
from downburst_app.cli.configuration.entries import Entry, Step, compact, entries, in_words, named_like, some_of
from downburst_contract.alarms import ObjectiveWanted, OwnReceiver, ReceiverNew, SilenceNew
from downburst_contract.base import defaults, names
from downburst_contract.circuits import PortChange
from downburst_contract.feeds import FeedChange
from downburst_contract.ldm import LdmAcceptNew, LdmSourceNew
from downburst_contract.sites import SiteChange
from downburst_contract.subscriptions import SubscriptionNew
from downburst_contract.upstreams import UpstreamNew


class Known:
    """The hub's configuration, each part fetched when it is needed."""

    def __init__(self, client: HubClient) -> None:
        self._client = client

    @cached_property
    def feeds(self) -> list[Entry]:
        """Feeds, without the fields that the hub sets itself."""
        return [some_of(feed, FEED) for feed in self._list("feeds")]

    @cached_property
    def sites(self) -> list[Entry]:
        """Sites, without their subscriptions and without the records of relays."""
        return [some_of(site, SITE) for site in self._list("sites") if not site["relay"]]

    @cached_property
    def subscriptions(self) -> list[Entry]:
        """Subscriptions of all sites, with their numbers."""
        return self._list("subscriptions")

    @cached_property
    def pins(self) -> list[Entry]:
        """Pins of feeds to transports."""
        plans = self._list("plans")
        return [{"feed": plan["feed"], "transport": plan["pin"]["transport"]} for plan in plans if plan.get("pin")]

    @cached_property
    def ldm_sources(self) -> list[Entry]:
        """Sources, without their state."""
        return [some_of(source, SOURCE) for source in self._list("ldm", "sources")]

    @cached_property
    def ldm_accepts(self) -> list[Entry]:
        """Permissions to push, with their numbers."""
        return self._list("ldm", "accepts")

    @cached_property
    def upstreams(self) -> list[Entry]:
        """Upstreams, without tokens, which are never shown."""
        return [some_of(upstream, UPSTREAM) for upstream in self._list("upstreams")]

    @cached_property
    def tcp_profiles(self) -> list[Entry]:
        """TCP profiles, without learnt values and trials."""
        return [fleet.tcp_profile(profile) for profile in self._list("tcp-profiles")]

    @cached_property
    def relays(self) -> list[Entry]:
        """Relays, without their state."""
        return [fleet.relay(relay) for relay in self._list("relays")]

    @cached_property
    def ports(self) -> list[Entry]:
        """The ends of circuits."""
        return [some_of(port, PORT) for port in self._list("ports")]

    @cached_property
    def topology(self) -> network.Declared:
        """The network between the hub and its sites."""
        return network.topology(self._client.ask("GET", "v1", "topology"))

    @cached_property
    def circuit_providers(self) -> list[Entry]:
        """Providers of circuits."""
        return [ordering.provider(one) for one in self._client.ask("GET", "v1", "circuit-providers")["providers"]]

    @cached_property
    def circuit_offers(self) -> list[Entry]:
        """Offers of circuits, without their use and measured times."""
        return [ordering.offer(one) for one in self._client.ask("GET", "v1", "circuit-offers")["offers"]]

    @cached_property
    def alarm_receivers(self) -> list[Entry]:
        """Receivers, with the parts of their addresses that are not secret."""
        found = [some_of(receiver, RECEIVER) for receiver in self._list("alarm-receivers")]
        return [one | {"address": without_secrets(one["address"])} for one in found]

    @cached_property
    def site_alarm_receivers(self) -> list[Entry]:
        """Sites' own receivers, with the parts of their addresses that are not secret."""
        found = [some_of(receiver, SITE_RECEIVER) for receiver in self._list("site-alarm-receivers")]
        return [one | {"address": without_secrets(one["address"])} for one in found]

    @cached_property
    def objectives(self) -> list[Entry]:
        """Objectives of feeds at single sites; a feed's own objective is one of its properties."""
        return [some_of(objective, OBJECTIVE) for objective in self._list("objectives")]

    @cached_property
    def windows(self) -> list[tuple[Entry, int]]:
        """Windows of maintenance with a begin that are not over, and their numbers."""
        return [(_window(silence), silence["number"]) for silence in self._list("silences") if silence.get("begins")]

    @property
    def maintenance(self) -> list[Entry]:
        """Windows of maintenance, without numbers."""
        return [window for window, _ in self.windows]

    @property
    def now(self) -> datetime:
        """Now, to find windows that are over."""
        return datetime.now(UTC)

    def document(self) -> dict[str, Any]:
        """The whole configuration, in the form that `apply` takes."""
        wishes = {site["site"]: list[Entry]() for site in self.sites}
        for wish in self.subscriptions:
            wishes[wish["site"]].append(some_of(wish, SUBSCRIPTION))
        sites = [site | {"subscriptions": wishes[site["site"]]} for site in self.sites]
        accepts = [some_of(line, ACCEPT) for line in self.ldm_accepts]
        parts = {name: getattr(self, name) for name in PARTS}
        return {name: part for name, part in (parts | {"sites": sites, "ldm_accepts": accepts}).items() if part}

    def _list(self, *path: str) -> list[Entry]:
        return [
            {name: value for name, value in one.items() if value is not None}
            for one in self._client.every("v1", *path)
        ]


def steps(wanted: Mapping[str, Any], known: Known, *, prune: bool) -> list[Step]:
    """The changes, in an order in which each follows those that it depends on."""
    made = [step for part in PARTS for step in _PARTS[part](wanted, known)]
    return [*made, *(_pruned(wanted, known) if prune else ())]


def without_secrets(address: str) -> str:
    """An address without its password; a URL is cut after the first part of its path."""
    if "://" not in address:
        return address
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    plain = host == parts.netloc and not parts.query and len(parts.path.strip("/").split("/")) <= PLAIN_PATH
    return address if plain else f"{parts.scheme}://{host}/{HIDDEN}"


def _feeds(wanted: Mapping[str, Any], known: Known) -> Iterator[Step]:
    for feed in entries(wanted, "feeds", "feed"):
        yield from _thing("feed", ("feeds",), feed, named_like(known.feeds, "feed", feed))


def _sites(wanted: Mapping[str, Any], known: Known) -> Iterator[Step]:
    for site in entries(wanted, "sites", "site"):
        subscriptions = site.pop("subscriptions", None) or []
        yield from _thing("site", ("sites",), site, named_like(known.sites, "site", site))
        yield from _subscriptions(site["site"], subscriptions, known)


def _pins(wanted: Mapping[str, Any], known: Known) -> Iterator[Step]:
    for pin in entries(wanted, "pins", "feed", "transport"):
        if named_like(known.pins, "feed", pin) != pin:
            body = {"transport": pin["transport"]}
            yield Step(f"pin feed {pin['feed']} to {pin['transport']}", "PUT", ("feeds", pin["feed"], "pin"), body)


def _sources(wanted: Mapping[str, Any], known: Known) -> Iterator[Step]:
    for source in entries(wanted, "ldm_sources", "source", "feeds", "upstreams"):
        whole: Entry = defaults(LdmSourceNew) | source
        name, before = whole["source"], named_like(known.ldm_sources, "source", whole)
        what = f"LDM source {name}: {whole['feeds']} {whole['pattern']} from {', '.join(whole['upstreams'])}"
        if before is None:
            yield Step(f"add {what}", "POST", ("ldm", "sources"), whole)
        elif any(before.get(key) != value for key, value in whole.items()):
            yield Step(f"change {what}", "PUT", ("ldm", "sources", name), whole)


def _accepts(wanted: Mapping[str, Any], known: Known) -> Iterator[Step]:
    for line in entries(wanted, "ldm_accepts", "feeds", "host"):
        whole = defaults(LdmAcceptNew) | line
        if not any(some_of(one, ACCEPT) == whole for one in known.ldm_accepts):
            what = f"let hosts that match {whole['host']} push {whole['feeds']} {whole['pattern']}"
            yield Step(what, "POST", ("ldm", "accepts"), whole)


def _upstreams(wanted: Mapping[str, Any], known: Known) -> Iterator[Step]:
    for upstream in entries(wanted, "upstreams", "upstream", "address"):
        name, before = upstream["upstream"], named_like(known.upstreams, "upstream", upstream)
        if before is None and "token" not in upstream:
            raise BadInput(f"upstream {name} is not there yet and needs a token; its operator gives one: add `token`")
        if before is None:
            yield Step(f"add upstream {name} at {upstream['address']}", "POST", ("upstreams",), upstream)
        elif any(before.get(key) != value for key, value in upstream.items() if key != "token"):
            raise BadInput(f"upstream {name} differs from the file, and can't be changed; remove it and add it again")


def _ports(wanted: Mapping[str, Any], known: Known) -> Iterator[Step]:
    for port in entries(wanted, "ports", "port", "rate_bps"):
        yield from _thing("port", ("ports",), port, named_like(known.ports, "port", port))


def _receivers(wanted: Mapping[str, Any], known: Known) -> Iterator[Step]:
    for receiver in entries(wanted, "alarm_receivers", "receiver", "kind", "address"):
        name, before = receiver["receiver"], named_like(known.alarm_receivers, "receiver", receiver)
        hidden = receiver | {"address": without_secrets(receiver["address"])}
        if before is not None and all(before.get(key) == value for key, value in hidden.items()):
            continue
        if receiver["address"].endswith(f"/{HIDDEN}"):
            raise BadInput(f"the address of alarm receiver {name} was masked by the export; write the whole address")
        if before is not None:
            yield Step(f"remove alarm receiver {name}, to recreate it", "DELETE", ("alarm-receivers", name))
        yield Step(f"add alarm receiver {name}{in_words(hidden, 'receiver')}", "POST", ("alarm-receivers",), receiver)


def _site_receivers(wanted: Mapping[str, Any], known: Known) -> Iterator[Step]:
    for receiver in entries(wanted, "site_alarm_receivers", "site", "receiver", "kind", "address"):
        site, name = receiver["site"], receiver["receiver"]
        before = next((one for one in known.site_alarm_receivers if _key(one, SITE_AND_NAME) == (site, name)), None)
        hidden = receiver | {"address": without_secrets(receiver["address"])}
        if before is not None and all(before.get(key) == value for key, value in hidden.items()):
            continue
        if receiver["address"].endswith(f"/{HIDDEN}"):
            raise BadInput(
                f"the address of alarm receiver {name} of {site} was masked by the export; write the whole address"
            )
        path = ("sites", site, "alarm-receivers")
        if before is not None:
            yield Step(f"remove alarm receiver {name} of {site}, to recreate it", "DELETE", (*path, name))
        body = {key: value for key, value in receiver.items() if key != "site"}
        yield Step(f"add alarm receiver {name} of {site}: {receiver['kind']} {hidden['address']}", "POST", path, body)


def _objectives(wanted: Mapping[str, Any], known: Known) -> Iterator[Step]:
    for objective in entries(wanted, "objectives", *FEED_AND_SITE, "objective_ms"):
        if some_of(objective, OBJECTIVE) not in known.objectives:
            feed, site = _key(objective, FEED_AND_SITE)
            body = {key: value for key, value in objective.items() if key not in FEED_AND_SITE}
            what = (
                f"set the objective of {feed} at {site} to {objective['objective_ms']:g} "
                f"ms{in_words(body, 'objective_ms')}"
            )
            yield Step(what, "PUT", ("feeds", feed, "objectives", site), body)


def _maintenance(wanted: Mapping[str, Any], known: Known) -> Iterator[Step]:
    for entry in entries(wanted, "maintenance", "begins", "minutes"):
        window = _declared_window(entry)
        is_over = _instant(window["begins"]) + timedelta(minutes=window["minutes"]) <= known.now
        if not is_over and window not in known.maintenance:
            yield Step(f"add maintenance window{in_words(window, '')}", "POST", ("silences",), window)


def _declared_window(entry: Entry) -> Entry:
    begins = _instant(entry["begins"]).isoformat()
    return {**some_of(entry, WINDOW), "begins": begins, "minutes": float(entry["minutes"])}


def _window(silence: Entry) -> Entry:
    """A silence as a window, with a duration in place of an end."""
    begins, until = _instant(silence["begins"]), _instant(silence["until"])
    minutes = (until - begins) / timedelta(minutes=1)
    return {**some_of(silence, WINDOW), "begins": begins.isoformat(), "minutes": minutes}


def _instant(text: object) -> datetime:
    """An instant of a declaration; YAML parses some of them itself."""
    try:
        instant = text if isinstance(text, datetime) else datetime.fromisoformat(str(text))
    except ValueError:
        raise BadInput(f"{text!r} is not a time; write for example 2026-03-01T06:00:00+00:00") from None
    if instant.tzinfo is None:
        raise BadInput(f"{text!r} has no offset from UTC; write for example 2026-03-01T06:00:00+00:00")
    return instant.astimezone(UTC)


def _key(entry: Entry, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(entry.get(name) for name in names)


def _thing(kind: str, path: tuple[str, ...], wanted: Entry, known: Entry | None) -> Iterator[Step]:
    name = wanted[kind]
    if known is None:
        yield Step(f"add {kind} {name}{in_words(wanted, kind)}", "POST", path, compact(wanted))
        return
    # A port stays at its site: the site is no property that can be changed.
    other = {key: value for key, value in wanted.items() if compact(known.get(key)) != compact(value)}
    if other:
        yield Step(f"change {kind} {name}{in_words(other, kind)}", "PATCH", (*path, name), other)


def _subscriptions(site: str, wanted: list[Entry], known: Known) -> Iterator[Step]:
    has = [wish for wish in known.subscriptions if wish["site"] == site]
    for wish in wanted:
        if not isinstance(wish, dict) or "feed" not in wish:
            raise BadInput(f"a subscription of site {site} names no feed; correct the file")
        whole = compact({"pattern": ".*"} | wish)
        same = [one for one in has if all(one.get(name) == whole.get(name) for name in WHAT)]
        if any(all(one.get(name) == value for name, value in whole.items()) for one in same):
            continue
        but = f" but not {whole['not_pattern']}" if "not_pattern" in whole else ""
        what = f"subscribe {site} to {whole['feed']} {whole['pattern']}{but}"
        yield Step(what, "POST", ("sites", site, "subscriptions"), whole)
        for one in same:
            yield Step(
                f"end subscription {one['id']} of {site}, which it replaces",
                "DELETE",
                ("subscriptions", str(one["id"])),
            )


def _pruned(wanted: Mapping[str, Any], known: Known) -> Iterator[Step]:
    """Removals of objects absent from the declared parts; parts that are left out stay unchanged."""
    if "ports" in wanted:
        ordering.check_ports_stay(wanted, known.circuit_offers)
    yield from _pruned_pairs(wanted, known)
    yield from _pruned_windows(wanted, known)
    yield from network.pruned(wanted, known.topology)
    for part, kind, path in _NAMED:
        if part in wanted:
            kept = {entry[kind] for entry in entries(wanted, part, kind)}
            for name in (one[kind] for one in getattr(known, part) if one[kind] not in kept):
                ends = (*path, name, "pin") if part == "pins" else (*path, name)
                yield Step(f"remove {_ONE[part]} {name}", "DELETE", ends)
        if part == "sites" and part in wanted:
            yield from _pruned_subscriptions(wanted, known)
    if "ldm_accepts" in wanted:
        lines = [defaults(LdmAcceptNew) | line for line in entries(wanted, "ldm_accepts", "feeds", "host")]
        for one in known.ldm_accepts:
            if some_of(one, ACCEPT) not in lines:
                what = f"let hosts that match {one['host']} no longer push {one['feeds']} {one['pattern']}"
                yield Step(what, "DELETE", ("ldm", "accepts", str(one["id"])))


def _pruned_pairs(wanted: Mapping[str, Any], known: Known) -> Iterator[Step]:
    """Removals of objects with two names, before those of their sites and feeds, which would remove them too."""
    for part, pair, what, ends in _PAIRS:
        if part in wanted:
            kept = [_key(one, pair) for one in entries(wanted, part, *pair)]
            for key in (_key(one, pair) for one in getattr(known, part)):
                if key not in kept:
                    yield Step(what.format(*key), "DELETE", tuple(end.format(*key) for end in ends))


def _pruned_windows(wanted: Mapping[str, Any], known: Known) -> Iterator[Step]:
    windows = [_declared_window(one) for one in entries(wanted, "maintenance", "begins", "minutes")]
    for window, number in known.windows:
        if "maintenance" in wanted and window not in windows:
            yield Step(f"end window {number}{in_words(window, '')}", "DELETE", ("silences", str(number)))


def _pruned_subscriptions(wanted: Mapping[str, Any], known: Known) -> Iterator[Step]:
    for site in entries(wanted, "sites", "site"):
        kept = [
            tuple(({"pattern": ".*"} | wish).get(name) for name in WHAT) for wish in site.get("subscriptions") or []
        ]
        for one in known.subscriptions:
            if one["site"] == site["site"] and tuple(one.get(name) for name in WHAT) not in kept:
                what = f"end subscription {one['id']} of {one['site']} to {one['feed']} {one['pattern']}"
                yield Step(what, "DELETE", ("subscriptions", str(one["id"])))


SITE_AND_NAME = ("site", "receiver")
FEED_AND_SITE = ("feed", "site")
TAGS = ("first_vlan", "last_vlan")
WHAT = ("feed", "pattern", "not_pattern")
FEED = ("feed", *names(FeedChange))
SITE = ("site", *names(SiteChange))
SUBSCRIPTION = names(SubscriptionNew, without=("start",))
SOURCE = names(LdmSourceNew)
ACCEPT = names(LdmAcceptNew)
UPSTREAM = names(UpstreamNew, without=("token",))
PORT = ("port", "site", *names(PortChange, without=TAGS), *TAGS)
RECEIVER = names(ReceiverNew)
SITE_RECEIVER = ("site", *names(OwnReceiver))
OBJECTIVE = (*FEED_AND_SITE, *names(ObjectiveWanted))
WINDOW = (*names(SilenceNew, without=("minutes", "alarm", "begins", "reason")), "reason")
_PARTS: Mapping[str, Callable[[Mapping[str, Any], Known], Iterator[Step]]] = {
    "feeds": _feeds,
    "ldm_sources": _sources,
    "sites": _sites,
    "ldm_accepts": _accepts,
    "upstreams": _upstreams,
    "relays": lambda wanted, known: fleet.relays(wanted, known.relays),
    "tcp_profiles": lambda wanted, known: fleet.tcp_profiles(wanted, known.tcp_profiles),
    "ports": _ports,
    "topology": lambda wanted, known: network.changed(wanted, known.topology),
    "circuit_providers": lambda wanted, known: ordering.providers(wanted, known.circuit_providers),
    "circuit_offers": lambda wanted, known: ordering.offers(wanted, known.circuit_offers),
    "pins": _pins,
    "alarm_receivers": _receivers,
    "site_alarm_receivers": _site_receivers,
    "objectives": _objectives,
    "maintenance": _maintenance,
}
PARTS = tuple(_PARTS)
"""The declared parts, in the order of creation."""
_NAMED = (
    ("alarm_receivers", "receiver", ("alarm-receivers",)),
    ("pins", "feed", ("feeds",)),
    ("circuit_offers", "offer", ("circuit-offers",)),
    ("circuit_providers", "provider", ("circuit-providers",)),
    ("ports", "port", ("ports",)),
    ("tcp_profiles", "profile", ("tcp-profiles",)),
    ("relays", "relay", ("relays",)),
    ("upstreams", "upstream", ("upstreams",)),
    ("ldm_sources", "source", ("ldm", "sources")),
    ("sites", "site", ("sites",)),
    ("feeds", "feed", ("feeds",)),
)
"""Parts with named entries, in the order of removal."""
_PAIRS = (
    (
        "site_alarm_receivers",
        SITE_AND_NAME,
        "remove alarm receiver {1} of {0}",
        ("sites", "{0}", "alarm-receivers", "{1}"),
    ),
    ("objectives", FEED_AND_SITE, "remove the objective of {0} at {1}", ("feeds", "{0}", "objectives", "{1}")),
)
"""Parts with entries that have two names."""
_ONE = {
    "alarm_receivers": "alarm receiver",
    "pins": "the pin of feed",
    "circuit_offers": "circuit offer",
    "circuit_providers": "circuit provider",
    "ports": "port",
    "tcp_profiles": "TCP profile",
    "relays": "relay",
    "upstreams": "upstream",
    "ldm_sources": "LDM source",
    "sites": "site",
    "feeds": "feed",
}
HIDDEN = "..."
PLAIN_PATH = 1
"""Webhooks of chat services have their secret in later parts of the path."""
