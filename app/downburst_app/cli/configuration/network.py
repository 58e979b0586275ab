"""The topology in a declaration: a mapping of kinds to elements, put as a whole."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from downburst.domain.topology import Topology
from downburst.foundation.errors import BadInput
from downburst_app.cli.configuration.entries import Entry, Step
from downburst_contract.topology import TopologyWanted

Declared = dict[str, list[Entry]]


def topology(values: Mapping[str, Any]) -> Declared:
    """The declared form of a topology: kinds without elements and members with their default left out."""
    whole = _read(values).model_dump(mode="json", exclude_defaults=True)
    return {kind: elements for kind, elements in whole.items() if elements}


def changed(wanted: Mapping[str, Any], known: Declared) -> Iterator[Step]:
    """The change that adds and changes the declared elements; others stay."""
    if "topology" in wanted:
        declared = _part(wanted)
        kinds = [kind for kind in TopologyWanted.model_fields if kind in known or kind in declared]
        yield from _step(known, {kind: _joined(known.get(kind, []), declared.get(kind, [])) for kind in kinds})


def pruned(wanted: Mapping[str, Any], known: Declared) -> Iterator[Step]:
    """The change that removes elements which the declaration does not name."""
    if "topology" in wanted:
        declared = _part(wanted)
        joined = {kind: _joined(known.get(kind, []), elements) for kind, elements in declared.items()}
        yield from _step(known | joined, declared)


def _part(wanted: Mapping[str, Any]) -> Declared:
    part = wanted["topology"] or {}
    if not isinstance(part, dict):
        raise BadInput(
            f"the topology of the file is no mapping of {', '.join(TopologyWanted.model_fields)}; correct it"
        )
    return topology(part)


def _step(before: Declared, after: Declared) -> Iterator[Step]:
    changes = _model(before).difference(_model(after))
    if changes:
        yield Step(f"topology: {', '.join(changes)}", "PUT", ("topology",), after)


def _joined(known: list[Entry], declared: list[Entry]) -> list[Entry]:
    """The elements of a kind by name; declared ones replace known ones."""
    by_name = {one["name"]: one for one in known} | {one["name"]: one for one in declared}
    return [by_name[name] for name in sorted(by_name)]


def _model(values: Mapping[str, Any]) -> Topology:
    return _read(values).to_model()


def _read(values: Mapping[str, Any]) -> TopologyWanted:
    """The topology; refuses an impossible one before any change is made."""
    try:
        wanted = TopologyWanted.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where, said = ".".join(map(str, first["loc"])), str(first["msg"]).removeprefix("Value error, ")
        raise BadInput(f"the topology can't be used: {where}: {said}; correct the file") from None
    wanted.to_model()
    return wanted
