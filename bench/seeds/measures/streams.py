"""Rows of streams at constant rates: the knee of a wire, recovery after a lost packet, soaks."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.harness.report import Row
from bench.probes.rows import MEASURES
from bench.probes.rows import Wanted as OfProbes
from bench.seeds.measures.group import NETWORK, WIRES, Group, Wanted


def of_probes(name: str, rows: Mapping[str, str], directory: Path, wanted: Wanted) -> list[Row]:
    """Rows of `make bench-probes` under the numbers of the published figures."""
    found = MEASURES[name](directory, OfProbes(wanted.runs, wanted.quick, wanted.notes))
    return [replace(row, id=rows[row.id]) for row in found if row.id in rows]


def _group(name: str, rows: Mapping[str, str], needs: tuple[str, ...]) -> Group:
    return Group(tuple(dict.fromkeys(rows.values())), partial(of_probes, name, rows), needs)


GROUPS = {
    "knee": _group("knee", {"1 out": "U9", "2 out": "U10", "1 in": "U9", "2 in": "U10"}, WIRES),
    "recovery": _group("tcp", {"6": "U6", "7": "U6", "8": "U6"}, WIRES),
    "soak": _group("soak", {"9": "U11", "10": "U12"}, (*NETWORK, "vxlan")),
}
