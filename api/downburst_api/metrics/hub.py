"""Metrics of the hub itself: its node, disk and logs, ingest and egress, alarms."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from downburst.domain.alarms import Alarm
from downburst.domain.feeds import FeedLog
from downburst.domain.plans import LegCounters, Plan
from downburst.domain.receipts import Settled
from downburst.exposition import Sample, catalogue, text_of
from downburst.host.host_clock import HostClock
from downburst.ledger.repositories.receipts import LossKey


@dataclass(frozen=True, slots=True)
class Standing:
    """The hub's state."""

    node_runs: bool
    node_restarts: int
    connected: int
    probes: Mapping[str, bool]
    """By name, true if the probe passes."""
    logs: Sequence[FeedLog]


class Disk(Protocol):
    """A disk's figures from the system."""

    @property
    def total(self) -> int:
        """Bytes."""

    @property
    def free(self) -> int:
        """Bytes."""


def hub_text(standing: Standing, disk: Disk) -> Iterator[str]:
    """Node, probes, disk and logs."""
    yield text_of(catalogue.NODE_UP, [((), standing.node_runs)])
    yield text_of(catalogue.NODE_RESTARTS, [((), standing.node_restarts)])
    yield text_of(catalogue.SESSIONS, [((), standing.connected)])
    yield text_of(catalogue.PROBE_UP, (((name,), passes) for name, passes in sorted(standing.probes.items())))
    yield text_of(catalogue.DISK_FREE, [((), disk.free)])
    yield text_of(catalogue.DISK_SIZE, [((), disk.total)])
    logs = sorted(standing.logs, key=lambda log: log.feed)
    yield text_of(catalogue.LOG_PRODUCTS, (((log.feed,), log.products) for log in logs))
    yield text_of(catalogue.LOG_SIZE, (((log.feed,), log.bytes) for log in logs))
    yield text_of(catalogue.LOG_LIMIT, (((log.feed,), log.limit_bytes) for log in logs))
    stamped = ((log.feed, log.oldest_us) for log in logs)
    yield text_of(catalogue.LOG_OLDEST, (((feed,), at / 1e6) for feed, at in stamped if at is not None))


def host_clock_text(clock: HostClock | None) -> Iterator[str]:
    """This machine's clock; nothing if its state can't be read."""
    known = [] if clock is None else [clock]
    yield text_of(catalogue.HOST_CLOCK_ERROR, (((), one.error_us / 1e6) for one in known))
    yield text_of(catalogue.HOST_CLOCK_SYNCHRONISED, (((), one.synchronised) for one in known))


def traffic_text(
    feeds: Sequence[str],
    arrivals: Mapping[str, tuple[int, int]],
    counters: Iterable[LegCounters],
    plans: Sequence[Plan],
    losses: Mapping[LossKey, int],
) -> Iterator[str]:
    """Ingested, sent and lost products. Counters of existing feeds begin at 0: `increase` sees the first product."""
    came = [(feed, *arrivals.get(feed, (0, 0))) for feed in feeds]
    yield text_of(catalogue.INGEST_PRODUCTS, (((feed,), products) for feed, products, _ in came))
    yield text_of(catalogue.INGEST_BYTES, (((feed,), size) for feed, _, size in came))
    yield from _sent(counters)
    yield text_of(catalogue.LOST_PRODUCTS, _lost(feeds, losses))
    yield text_of(catalogue.PLAN_SWITCHES, (((plan.feed,), plan.version - 1) for plan in plans))
    ratios = ((plan.feed, plan.figures.get("predicted_over_measured")) for plan in plans)
    yield text_of(
        catalogue.PREDICTED_RATIO, (((feed,), ratio) for feed, ratio in ratios if isinstance(ratio, int | float))
    )


def catch_ups_text(feeds: Sequence[str], streams: Mapping[str, int], saved_bytes: Mapping[str, int]) -> Iterator[str]:
    """Streams by which sites caught up together."""
    yield text_of(catalogue.CATCH_UPS, (((feed,), streams.get(feed, 0)) for feed in feeds))
    yield text_of(catalogue.CATCH_UP_SAVED_BYTES, (((feed,), saved_bytes.get(feed, 0)) for feed in feeds))


def _sent(counters: Iterable[LegCounters]) -> Iterator[str]:
    """Without a label for legs: a feed gets a new leg with each change of its plan."""
    sums: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for row in counters:
        kept = sums[row.feed, row.transport.value]
        kept[0] += row.egress_bytes
        kept[1] += row.repair_bytes
    ordered = sorted(sums.items())
    yield text_of(catalogue.EGRESS_BYTES, ((labels, sent) for labels, (sent, _) in ordered))
    yield text_of(catalogue.REPAIR_BYTES, ((labels, again) for labels, (_, again) in ordered))


def _lost(feeds: Sequence[str], losses: Mapping[LossKey, int]) -> Iterator[Sample]:
    lost = Counter({(feed, outcome): 0 for feed in feeds for outcome in ("expired", "rejected")})
    for key, products in losses.items():
        lost[key.feed, key.outcome] += products
    yield from sorted(lost.items())


def deadlines_text(rows: Iterable[Settled]) -> str:
    """The outcomes of products of feeds with a deadline, summed over the epochs of their logs."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for row in rows:
        outcomes = {
            "stored": row.stored + row.duplicates,
            "late-at-hub": row.late_at_hub,
            "late-at-site": row.late_at_site,
            "lost": row.expired + row.rejected,
        }
        counts.update({(row.feed, row.site, outcome): products for outcome, products in outcomes.items()})
    return text_of(catalogue.DEADLINE_PRODUCTS, sorted(counts.items()))


def alarms_text(alarms: Iterable[Alarm]) -> str:
    """Open alarms by the labels that operators route them by; a count, as one site may have several of a kind."""
    counts = Counter((one.kind.value, one.severity.value, one.feed or "", one.site or "") for one in alarms)
    return text_of(catalogue.ALARMS, sorted(counts.items()))
