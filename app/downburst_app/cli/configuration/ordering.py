"""Offers and providers of circuits in a declaration."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from downburst.foundation.errors import BadInput
from downburst_app.cli.configuration.entries import Entry, Step, entries, in_words, named_like
from downburst_contract.ordering import CircuitOfferWanted, CircuitProviderWanted

_Wanted = CircuitOfferWanted | CircuitProviderWanted


def providers(wanted: Mapping[str, Any], known: list[Entry]) -> Iterator[Step]:
    """The changes to providers."""
    for entry in entries(wanted, "circuit_providers", "provider"):
        yield from _put("provider", "circuit-providers", CircuitProviderWanted, entry, known)


def offers(wanted: Mapping[str, Any], known: list[Entry]) -> Iterator[Step]:
    """The changes to offers."""
    for entry in entries(wanted, "circuit_offers", "offer"):
        yield from _put("offer", "circuit-offers", CircuitOfferWanted, entry, known)


def check_ports_stay(wanted: Mapping[str, Any], known_offers: list[Entry]) -> None:
    """Refuses the removal of a port that offers name afterwards; `wanted` declares all ports."""
    ports = {entry["port"] for entry in entries(wanted, "ports", "port")}
    declared = "circuit_offers" in wanted
    naming: dict[str, list[str]] = {}
    for one in entries(wanted, "circuit_offers", "offer") if declared else known_offers:
        for port in (one["hub_port"], *one["ports"]):
            naming.setdefault(port, []).append(one["offer"])
    for port in sorted(naming.keys() - ports):
        said = ", ".join(naming[port])
        raise BadInput(
            f"port {port!r} is not in the file, and offers of circuits name it: {said}; add the port, or change or "
            "remove them"
        )


def provider(values: Entry) -> Entry:
    """The declared members of a provider; those with their default left out."""
    return {"provider": values["provider"]} | _declared(CircuitProviderWanted, values)


def offer(values: Entry) -> Entry:
    """The declared members of an offer; those with their default left out."""
    return {"offer": values["offer"]} | _declared(CircuitOfferWanted, values)


def _put(kind: str, path: str, shape: type[_Wanted], entry: Entry, known: list[Entry]) -> Iterator[Step]:
    name = str(entry[kind])
    body = _checked(kind, name, shape, {key: value for key, value in entry.items() if key != kind})
    before = named_like(known, kind, {kind: name})
    if before != {kind: name} | body:
        verb = "add" if before is None else "change"
        yield Step(f"{verb} circuit {kind} {name}{in_words(body, '')}", "PUT", (path, name), body)


def _checked(kind: str, name: str, shape: type[_Wanted], values: Entry) -> Entry:
    """The members; refuses impossible ones before any change is made."""
    try:
        wanted = shape.model_validate(values)
        wanted.to_model(name)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        said = str(first["msg"]).removeprefix("Value error, ")
        raise BadInput(f"circuit {kind} {name} can't be used: {where or kind}: {said}; correct the file") from None
    return wanted.model_dump(mode="json", exclude_defaults=True)


def _declared(shape: type[_Wanted], values: Entry) -> Entry:
    members = {name: values[name] for name in shape.model_fields if values.get(name) is not None}
    return shape.model_validate(members).model_dump(mode="json", exclude_defaults=True)
