"""The cases of unicast: labs, contenders and amounts; several rows may need the runs of one case."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.harness import report
from bench.harness.delivery import HUB
from bench.harness.fan_out import FanOut, FanOutContender, Stream
from bench.harness.scratch import tell
from bench.harness.turns import Turns
from bench.peers.kafka.peer import install_kafka
from bench.peers.nats.peer import install_nats
from bench.peers.sendfile import Sendfile
from bench.unicast import far, live, many, rows
from bench.unicast.catch_up import CatchUp, LiveBurst
from bench.unicast.outage import Outage, Phases, outage
from kit.namespaces import Lab


@dataclass(frozen=True)
class Amounts:
    """The amount of work of each case."""

    small_products: int
    middling_products: int
    large_products: int
    seconds: float
    """Of schedules that are short."""
    long_seconds: float
    """Of schedules that need many products, or time."""
    bursts: int
    outage: Phases
    crowd_sites: int
    idle_sites: int

    def times(self, scale: float) -> "Amounts":
        """Scales every amount by this factor, to at least one."""

        def some(count: int) -> int:
            return max(1, round(count * scale))

        phases = Phases(self.outage.before_s * scale, self.outage.away_s * scale, self.outage.after_s * scale)
        return Amounts(
            small_products=some(self.small_products),
            middling_products=some(self.middling_products),
            large_products=some(self.large_products),
            seconds=self.seconds * scale,
            long_seconds=self.long_seconds * scale,
            bursts=some(self.bursts),
            outage=phases,
            crowd_sites=some(self.crowd_sites),
            idle_sites=some(self.idle_sites),
        )


class Bench:
    """The cases. Contenders take turns, every run starts its processes afresh in a directory of its own."""

    def __init__(
        self, directory: Path, runs: int, amounts: Amounts, *, real_sites: bool = False, brokers: bool = True
    ) -> None:
        self.notes: list[str] = []
        self._turns, self._runs, self._amounts = Turns(directory, self.notes), runs, amounts
        self._real_sites, self._brokers = real_sites, brokers

    def small(self) -> list[report.Row]:
        """Rows 1 and 4."""
        contenders: list[FanOutContender] = [CatchUp(), LiveBurst(), Sendfile()]
        if self._brokers:
            contenders += install_nats(self.notes)
            contenders += install_kafka(self.notes)
        stream = Stream(self._amounts.small_products, SMALL_BYTES)
        return rows.rows_of_small(self._take_turns("2 kB to 8", contenders, stream))

    def middling(self) -> list[report.Row]:
        """Row 2."""
        stream = Stream(self._amounts.middling_products, 100_000)
        return rows.rows_of_large("2", "100 kB", self._take_turns("100 kB to 8", [CatchUp(), Sendfile()], stream))

    def large(self) -> list[report.Row]:
        """Row 3."""
        stream = Stream(self._amounts.large_products, 5_000_000)
        return rows.rows_of_large("3", "5 MB", self._take_turns("5 MB to 8", [CatchUp(), Sendfile()], stream))

    def scaling(self) -> list[report.Row]:
        """Row 5."""

        def run(directory: Path) -> live.Scaling:
            with _lab(8) as lab:
                return live.scaling(lab, directory, per_s=FIXED_PER_S, seconds=self._amounts.seconds)

        return rows.rows_of_scaling(FIXED_PER_S, self._turns.repeat("CPU per delivery by sites", run, self._runs))

    def low_rate(self) -> list[report.Row]:
        """Row 6."""

        def run(directory: Path) -> live.Latency:
            with _lab(4) as lab:
                return live.low_rate(lab, directory, seconds=2 * self._amounts.seconds)

        return rows.rows_of_low_rate(self._turns.repeat("latency at 100/s", run, self._runs))

    def tail(self) -> list[report.Row]:
        """Row 7."""

        def run(directory: Path) -> live.Tail:
            with _lab(4) as lab:
                return live.tail_of_bursts(lab, directory, count=self._amounts.bursts)

        return rows.rows_of_tail(self._amounts.bursts, self._turns.repeat("tails of bursts", run))

    def far(self) -> list[report.Row]:
        """Row 8."""
        seconds = self._amounts.long_seconds
        runs = self._turns.repeat(
            "a model feed over 70 ms", lambda directory: far.model_feed(directory, seconds=seconds)
        )
        lag_ms = max(run.wire_lag_p99_ms for run in runs)
        self.notes.append(f"Row 8: the wire in user space was {lag_ms:.2f} ms late (p99); above 1 ms don't judge it.")
        return rows.rows_of_far(seconds, runs)

    def crowd(self) -> list[report.Row]:
        """Row 9."""

        def run(directory: Path) -> many.Crowd:
            with _lab(1) as lab:
                sites, seconds = self._amounts.crowd_sites, self._amounts.long_seconds
                return many.crowd(lab, directory, sites=sites, seconds=seconds, real=self._real_sites)

        return rows.rows_of_crowd(self._turns.repeat("live sessions", run))

    def idle(self) -> list[report.Row]:
        """Row 10."""

        def run(directory: Path) -> many.Idle:
            with _lab(1) as lab:
                amounts = self._amounts
                seconds, real = 2 * amounts.seconds, self._real_sites
                return many.idle(lab, directory, sites=amounts.idle_sites, seconds=seconds, real=real)

        return rows.rows_of_idle(self._turns.repeat("idle sites", run))

    def warnings(self) -> list[report.Row]:
        """Row 11."""
        seconds = 4 * self._amounts.seconds

        def run(directory: Path) -> live.Latency:
            with Lab((HUB, far.SITE)) as lab:
                return far.warnings_beside_giant(lab, directory, seconds=seconds)

        return rows.rows_of_warnings(seconds, self._turns.repeat("warnings beside a giant", run))

    def outage(self) -> list[report.Row]:
        """Row 12."""

        def run(directory: Path) -> Outage:
            with _lab(8) as lab:
                return outage(lab, directory, self._amounts.outage, rate=OUTAGE_RATE, size=OUTAGE_SIZE)

        return rows.rows_of_outage(self._turns.repeat("an outage", run))

    def _take_turns(self, case: str, contenders: Sequence[FanOutContender], stream: Stream) -> rows.Runs:
        runs: dict[str, list[FanOut]] = {contender.name: [] for contender in contenders}
        with _lab(8) as lab:
            for _ in range(self._runs):
                for contender in contenders:
                    run = self._turns.second_try(
                        f"{case}: {contender.name}", partial(contender.fan_out, lab, stream=stream)
                    )
                    runs[contender.name].append(run)
                    figures = f"{run.products_per_s:,.0f}/s each, {run.together_mbps:,.0f} MB/s together"
                    tell(f"{case}: {contender.name} {figures}, {run.cpu_us_per_delivery:.1f} us a delivery")
        return runs


def _lab(sites: int) -> Lab:
    """Hosts whose links keep bundles of segments whole, as offloading interfaces do."""
    return Lab((HUB, *(f"site{number}" for number in range(sites))), segments=False)


SMALL_BYTES = 2_000
FIXED_PER_S = 10_000
OUTAGE_RATE, OUTAGE_SIZE = 10.0, 0.05
FULL = Amounts(
    small_products=100_000,
    middling_products=3_000,
    large_products=60,
    seconds=10,
    long_seconds=60,
    bursts=200,
    outage=Phases(before_s=20, away_s=72, after_s=30),
    crowd_sites=570,
    idle_sites=1_000,
)
