"""Metrics of bridges: our own, and those of WIS2's hierarchy (wmo-im/wis2-metric-hierarchy, metrics/gc.csv)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from downburst.domain.bridges import BridgesNow, CentreCounts, State, Wis2Source
from downburst.domain.bridges.publishers import Step, Wis2Publisher
from downburst.exposition import text_of
from downburst.exposition.catalogue import (
    BRIDGE_CONNECTED,
    BRIDGE_LAST,
    BRIDGE_PRODUCTS,
    GC_DOWNLOADED,
    GC_ERRORS,
    GC_INTEGRITY,
    GC_LAST,
    PUBLISHER_CONNECTED,
    PUBLISHER_PRODUCTS,
)
from downburst.ledger import Transaction


@dataclass(frozen=True, slots=True)
class BridgeFacts:
    """The sources and publishers of the ledger, with the numbers of their products."""

    sources: list[tuple[Wis2Source, Mapping[State, int]]]
    publishers: list[tuple[Wis2Publisher, Mapping[Step, int]]]


def bridges_of(tx: Transaction) -> BridgeFacts:
    """All of them."""
    sources = [(one, tx.wis2.notices.count(one.name)) for one in tx.wis2.sources.all()]
    publishers = [(one, tx.wis2.outbox.count(one.name)) for one in tx.wis2.publishers.all()]
    return BridgeFacts(sources, publishers)


def bridges_text(facts: BridgeFacts, now: BridgesNow, report_by: str) -> Iterator[str]:
    """The metrics; a source that is switched off has no brokers."""
    brokers = [(name, url, one) for name, source in now.sources.items() for url, one in source.standings.items()]
    yield text_of(BRIDGE_CONNECTED, (((name, url), one.connected_at is not None) for name, url, one in brokers))
    heard = ((key, one.last_at.timestamp()) for *key, one in brokers if one.last_at is not None)
    yield text_of(BRIDGE_LAST, heard)
    products = (((one.name, state.value), count) for one, counts in facts.sources for state, count in counts.items())
    yield text_of(BRIDGE_PRODUCTS, products)
    running = now.publishers.items()
    yield text_of(PUBLISHER_CONNECTED, (((name,), one.standing.connected_at is not None) for name, one in running))
    sent = (((one.name, step.value), count) for one, counts in facts.publishers for step, count in counts.items())
    yield text_of(PUBLISHER_PRODUCTS, sent)
    yield from _of_the_hierarchy(now, report_by)


def _of_the_hierarchy(now: BridgesNow, report_by: str) -> Iterator[str]:
    downloaded, errors, differing, last_s = Counter[str](), Counter[str](), Counter[str](), dict[str, float]()
    for centre, counts in _centres(now):
        downloaded[centre] += counts.downloaded
        errors[centre] += counts.errors
        differing[centre] += counts.differing
        if counts.last_at is not None:
            last_s[centre] = max(last_s.get(centre, 0.0), counts.last_at.timestamp())
    for metric, values in ((GC_DOWNLOADED, downloaded), (GC_ERRORS, errors), (GC_INTEGRITY, differing)):
        yield text_of(metric, (((centre, report_by), value) for centre, value in sorted(values.items())))
    yield text_of(GC_LAST, (((centre, report_by), value) for centre, value in sorted(last_s.items())))


def _centres(now: BridgesNow) -> Iterator[tuple[str, CentreCounts]]:
    for source in now.sources.values():
        yield from list(source.centres.items())
