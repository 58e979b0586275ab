"""The measurements, in groups: one set of processes and networks gives several rows."""

from collections.abc import Mapping

from bench.seeds.measures import circuits, fan_out, paths, receiving, streams, traces
from bench.seeds.measures.group import Group, Wanted

GROUPS: Mapping[str, Group] = {
    **traces.GROUPS,
    **fan_out.GROUPS,
    **receiving.GROUPS,
    **circuits.GROUPS,
    **paths.GROUPS,
    **streams.GROUPS,
}
"""All groups by name, in the order in which they are measured."""

__all__ = ["GROUPS", "Group", "Wanted"]
