"""TCP profiles and relays in a declaration."""

from collections.abc import Iterator, Mapping
from typing import Any

from downburst.domain.relays import FanOut, Relay
from downburst.domain.tcp.profiles import ProfileMode, TcpKnobs, TcpProfile
from downburst.foundation.errors import BadInput
from downburst_app.cli.configuration.entries import Entry, Step, entries, in_words, named_like, some_of
from downburst_contract.base import names
from downburst_contract.relays import RelayWanted
from downburst_contract.tcp_profiles import TcpProfileWanted


def tcp_profiles(wanted: Mapping[str, Any], known: list[Entry]) -> Iterator[Step]:
    """The changes to TCP profiles."""
    for profile in entries(wanted, "tcp_profiles", "profile", "prefix"):
        whole = tcp_profile(profile | {"prefix": _checked(profile).prefix})
        before = named_like(known, "profile", whole)
        if before != whole:
            verb, name = "add" if before is None else "change", whole.pop("profile")
            yield Step(f"{verb} TCP profile {name}{in_words(whole, '')}", "PUT", ("tcp-profiles", name), whole)


def _checked(profile: Entry) -> TcpProfile:
    """The profile; refuses an impossible one before any change is made."""
    name, knobs = profile["profile"], profile.get("knobs") or {}
    try:
        mode = ProfileMode(profile.get("mode", "static"))
        return TcpProfile(str(name), str(profile["prefix"]), mode, TcpKnobs(**knobs))
    except (TypeError, ValueError) as error:
        raise BadInput(f"TCP profile {name} can't be used: {error}; correct the file") from None


def tcp_profile(values: Entry) -> Entry:
    """The declared members; those with their default left out."""
    return {name: value for name, value in some_of(values, TCP_PROFILE).items() if value not in ({}, "static")}


def relays(wanted: Mapping[str, Any], known: list[Entry]) -> Iterator[Step]:
    """The changes to relays; one that is on the way of another comes after it."""
    declared = [relay(_checked_relay(entry)) for entry in entries(wanted, "relays", "relay")]
    for whole in _inner_first(declared):
        before = named_like(known, "relay", whole)
        if before != whole:
            verb, name = "add" if before is None else "change", whole.pop("relay")
            yield Step(f"{verb} relay {name}{in_words(whole, '')}", "PUT", ("relays", name), whole)


def relay(values: Entry) -> Entry:
    """The declared members; those with their default left out, and lists without order sorted."""
    kept = some_of(values, RELAY)
    if kept.get("feeds") == ["*"]:
        del kept["feeds"]
    return kept | {name: sorted(kept[name]) for name in ("sites",) if name in kept}


def _inner_first(declared: list[Entry]) -> list[Entry]:
    """Relays in an order in which each follows the relays behind it; circles are left to the hub."""
    left, ordered = list(declared), list[Entry]()
    while left:
        waiting = {one["relay"] for one in left}
        ready = [one for one in left if not waiting & set(one.get("sites", ()))] or left
        ordered += ready
        left = [one for one in left if one not in ready]
    return ordered


def _checked_relay(entry: Entry) -> Entry:
    """The entry; refuses an impossible relay before any change is made."""
    name, fan_out = entry["relay"], entry.get("fan_out")
    lists = {"sites": entry.get("sites") or [], "feeds": entry.get("feeds", ["*"])}
    for one, listed in lists.items():
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            raise BadInput(f"the {one} of relay {name} are no list of names; correct the file")
    try:
        kind = None if fan_out is None else FanOut(fan_out)
        Relay(str(name), entry.get("address"), kind, tuple(lists["sites"]), tuple(lists["feeds"]))
    except (TypeError, ValueError) as error:
        raise BadInput(f"relay {name} can't be used: {error}; correct the file") from None
    return entry


TCP_PROFILE = ("profile", *names(TcpProfileWanted))
RELAY = ("relay", *names(RelayWanted))
