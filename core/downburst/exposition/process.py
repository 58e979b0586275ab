"""Metrics of every process with a page: its build, its own unexpected errors, its memory and processor time."""

from functools import cache
from importlib.metadata import version

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from downburst.exposition.catalogue import BUILD_INFO, INTERNAL_FAULTS
from downburst.exposition.text import text_of
from downburst.supervision import FAULTS


def process_text(part: str) -> str:
    """The text; `part` names the process: hub, sender, scheduler, latency, fleet."""
    build = text_of(BUILD_INFO, [((part, version("downburst")), 1)])
    faults = text_of(INTERNAL_FAULTS, [((fault.handler,), fault.count) for fault in FAULTS.all()])
    return build + faults + generate_latest(_of_the_system()).decode()


@cache
def _of_the_system() -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    return registry
