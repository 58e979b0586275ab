"""The cases of multicast: labs, contenders and amounts; several rows may need the runs of one case."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from bench.harness import report
from bench.harness.busy_loops import busy_loops
from bench.harness.delivery import HUB
from bench.harness.turns import Entry, Start, Turns
from bench.multicast import busiest_minute, crowd, message_rows, rows, small_buffers
from bench.multicast.messages import Messages, messages_by_leg, messages_by_nats
from bench.peers.bare import Blaster, TlsFanOut
from bench.peers.nats.peer import has_nats
from bench.peers.packaged import Norm, Udpcast, has_norm, has_package
from bench.peers.tcp_fan_out import TcpFanOut
from bench.peers.uftp import Uftp
from bench.product.multicast_leg import Downburst
from kit.namespaces import Lab


@dataclass(frozen=True)
class Amounts:
    """The amount of work of each case."""

    asked_bytes: int
    """At a rate that is asked for."""
    fast_bytes: int
    narrow_bytes: int
    narrow_bytes_of_twenty: int
    message_seconds: float
    minute_seconds: float
    tenfold_seconds: float
    """All logs are in memory: ten times NGRID's rate to eight sites takes a quarter of a gigabyte a second."""

    def times(self, scale: float) -> "Amounts":
        """Scales every amount by this factor, with a positive minimum."""

        def some(count: int) -> int:
            return max(1_000_000, round(count * scale))

        return Amounts(
            some(self.asked_bytes),
            some(self.fast_bytes),
            some(self.narrow_bytes),
            some(self.narrow_bytes_of_twenty),
            max(1.0, self.message_seconds * scale),
            max(1.0, self.minute_seconds * scale),
            max(1.0, self.tenfold_seconds * scale),
        )


class Bench:
    """Measures a case when its rows ask for it, each case once."""

    def __init__(self, directory: Path, runs: int, amounts: Amounts, *, only_ours: bool = False) -> None:
        self.notes: list[str] = []
        self._turns, self._runs, self._amounts = Turns(directory, self.notes), runs, amounts
        self._with_peers = not only_ours
        self._deliveries: dict[tuple[str, int], rows.Runs] = {}

    def fast(self) -> list[report.Row]:
        """Rows 1 and 2."""
        contenders = {rows.OURS: Entry(partial(Downburst, rate_bps=FAST_BPS), self._runs)}
        if self._with_peers:
            bare: dict[str, Start] = {
                rows.BLASTER: partial(Blaster, like_us=False),
                rows.LIKE_US: partial(Blaster, like_us=True),
                rows.TLS: TlsFanOut,
                rows.SENDFILE: TcpFanOut,
            }
            contenders |= {name: Entry(start, self._runs) for name, start in bare.items()}
            contenders |= self._packaged(None)
        with Lab(_hosts(7), segments=False) as lab:
            fast = self._turns.take("as fast as it goes", lab, contenders, self._amounts.fast_bytes)
        return rows.rows_of_fast(fast) + rows.rows_of_asked(self._asked(rows.NO_LOSS))

    def gigabit(self) -> list[report.Row]:
        """Row 3."""
        found = []
        with Lab(_hosts(7), segments=False) as lab:
            for host in lab.hosts:
                lab.rate(host, up_bps=10 * LINK_BPS, down_bps=10 * LINK_BPS, buffer_bytes=GIGABIT_BUFFER_BYTES)
            for asked_bps in (600_000_000, 900_000_000):
                ours = self._ours(round(asked_bps * FRAME_BITS_PER_PRODUCT_BIT), self._runs)
                case = f"links of 1 Gb/s, {asked_bps // 1_000_000} asked"
                runs = self._turns.take(case, lab, ours, self._amounts.fast_bytes)
                found += rows.rows_of_gigabit(asked_bps, runs)
        return found

    def losses(self) -> list[report.Row]:
        """Row 4."""
        return rows.rows_of_losses({case: self._asked(case) for case in CASES_OF_ROW_4})

    def twenty(self) -> list[report.Row]:
        """Row 5."""
        few = (self._asked(rows.NO_LOSS), self._asked(rows.ONE_AT_ALL))
        found = rows.rows_of_twenty(few, self._clean_and_lossy(20, ASKED_BPS), "100 Mb/s asked")
        # Two cores carry less to 20 nodes at once; only below that rate are all repairs due to losses.
        few, many = self._clean_and_lossy(7, CARRIED_BPS), self._clean_and_lossy(20, CARRIED_BPS)
        return found + rows.rows_of_twenty(few, many, f"{CARRIED_BPS // 1_000_000} Mb/s asked")

    def one_slow(self) -> list[report.Row]:
        """Row 6."""
        clean = self._asked(rows.NO_LOSS)
        cases = (rows.FIVE_AT_ONE, rows.HALF_AT_ONE)
        return [row for case in cases for row in rows.rows_of_one_slow(case, self._asked(case), clean)]

    def narrow(self) -> list[report.Row]:
        """Row 7."""
        found = []
        for sites, size in ((7, self._amounts.narrow_bytes), (20, self._amounts.narrow_bytes_of_twenty)):
            contenders = self._ours(BELOW_LINK_BPS)
            if self._with_peers:
                contenders[rows.TLS] = Entry(TlsFanOut, self._runs)
            with Lab(_hosts(sites)) as lab:
                for host in lab.hosts:
                    lab.rate(host, up_bps=LINK_BPS, down_bps=LINK_BPS)
                runs = self._turns.take(f"links of 100 Mb/s, {sites} sites", lab, contenders, size)
                found += rows.rows_of_narrow(sites, runs)
        return found

    def busy(self) -> list[report.Row]:
        """Row 8."""
        found = []
        with Lab(_hosts(7)) as lab:
            for asked_bps in (ASKED_BPS, 3 * ASKED_BPS):
                case, ours = f"{asked_bps // 1_000_000} Mb/s asked", self._ours(asked_bps)
                size = self._amounts.asked_bytes
                busy = self._turns.take(f"{case}, busy loops", lab, ours, size, partial(busy_loops, LOOPS_PER_CORE))
                idle = self._turns.take(case, lab, ours, size)
                found += rows.rows_of_busy(asked_bps, busy, idle)
        return found

    def messages(self) -> list[report.Row]:
        """Row 9."""
        return message_rows.rows_of_messages(*self._messages(0.0))

    def lossy_messages(self) -> list[report.Row]:
        """Row 10."""
        return message_rows.rows_of_lossy_messages(*self._messages(1.0))

    def busiest_minute(self) -> list[report.Row]:
        """Row 11."""
        seconds = self._amounts.minute_seconds
        arrivals = busiest_minute.minute(seconds, self.notes)
        ideal = busiest_minute.first_come_first_served(arrivals, busiest_minute.USABLE_BPS)

        def played(*, multicast: bool) -> busiest_minute.Waits:
            with Lab(_hosts(7)) as lab:
                run = partial(busiest_minute.played, lab, arrivals=arrivals, multicast=multicast)
                return self._turns.second_try(f"busiest minute, {'multicast' if multicast else 'unicast'}", run)

        multicast = played(multicast=True)
        unicast = played(multicast=False) if self._with_peers else None
        return message_rows.rows_of_minute(seconds, ideal, multicast, unicast)

    def tenfold(self) -> list[report.Row]:
        """Row 13."""
        seconds = self._amounts.tenfold_seconds
        arrivals = busiest_minute.minute(seconds * busiest_minute.FASTER, self.notes)

        def run() -> busiest_minute.Tenfold:
            with Lab(_hosts(8)) as lab:
                played = partial(busiest_minute.tenfold, lab, arrivals=arrivals)
                return self._turns.second_try("NGRID at ten times its rate", played)

        return message_rows.rows_of_tenfold(seconds, [run() for _ in range(self._runs)])

    def small_buffers(self) -> list[report.Row]:
        """Row 14: with and without real-time priority, in turns."""
        priorities = {small_buffers.NORMAL: None, small_buffers.REAL_TIME: small_buffers.READERS_PRIORITY}
        runs: dict[str, list[small_buffers.Losses]] = {name: [] for name in priorities}
        seconds = self._amounts.message_seconds
        for _ in range(self._runs):
            for name, priority in priorities.items():
                run = partial(small_buffers.lost_beside_loops, priority=priority, seconds=seconds)
                runs[name].append(self._turns.second_try(f"56 Mb/s into 64 kB, {name}", run))
        return small_buffers.rows_of_small_buffers(runs)

    def crowd(self) -> list[report.Row]:
        """Row 12."""
        return message_rows.rows_of_crowd(crowd.simulated())

    def _messages(self, loss_percent: float) -> tuple[list[Messages], list[Messages]]:
        kinds = {rows.OURS: messages_by_leg}
        if self._with_peers and has_nats(self.notes):
            kinds[message_rows.NATS] = messages_by_nats
        runs: dict[str, list[Messages]] = {message_rows.NATS: []}
        with Lab(_hosts(7)) as lab:
            for site in rows.SITES:
                lab.loss(site, loss_percent, protocols=("udp", "tcp"))
            for _ in range(self._runs):
                for name, kind in kinds.items():
                    run = partial(kind, lab, per_s=MESSAGES_PER_S, seconds=self._amounts.message_seconds)
                    case = f"messages, {loss_percent:.0f} % loss: {name}"
                    runs.setdefault(name, []).append(self._turns.second_try(case, run))
        return runs[rows.OURS], runs[message_rows.NATS]

    def _asked(self, case: str) -> rows.Runs:
        """Seven sites at 100 Mb/s, each packet alone on the links."""

        def measure() -> rows.Runs:
            contenders = self._ours(ASKED_BPS)
            if self._with_peers:
                few = case in (rows.FIVE_AT_ONE, rows.HALF_AT_ONE)
                contenders |= self._packaged(ASKED_BPS, only_uftp=few)
            # Frames of a group that a site has left must not fill its link: the switch knows the members.
            with Lab(_hosts(7), snooping=case == rows.HALF_AT_ONE) as lab:
                for site, percent in rows.LOSSES[case].items():
                    lab.loss(site, percent, protocols=("udp", "tcp"))
                if case == rows.HALF_AT_ONE:
                    lab.rate(rows.SLOW, down_bps=rows.HALF_BPS)
                return self._turns.take(f"100 Mb/s asked, {case}", lab, contenders, self._amounts.asked_bytes)

        return self._once((case, 7), measure)

    def _clean_and_lossy(self, sites: int, asked_bps: int) -> tuple[rows.Runs, rows.Runs]:
        return self._equal_losses(sites, 0.0, asked_bps), self._equal_losses(sites, 1.0, asked_bps)

    def _equal_losses(self, sites: int, percent: float, asked_bps: int) -> rows.Runs:
        def measure() -> rows.Runs:
            contenders = self._ours(asked_bps)
            if self._with_peers and asked_bps == ASKED_BPS:
                contenders |= self._packaged(asked_bps, only_uftp=True)
            with Lab(_hosts(sites)) as lab:
                for site in lab.hosts[1:]:
                    lab.loss(site, percent, protocols=("udp", "tcp"))
                case = f"{asked_bps // 1_000_000} Mb/s asked, {sites} sites, {percent:.0f} %"
                size = min(self._amounts.asked_bytes, asked_bps // 8 * SECONDS_AT_ASKED_RATE)
                return self._turns.take(case, lab, contenders, size)

        return self._once((f"{percent} {asked_bps}", sites), measure)

    def _once(self, key: tuple[str, int], measure: Callable[[], rows.Runs]) -> rows.Runs:
        if key not in self._deliveries:
            self._deliveries[key] = measure()
        return self._deliveries[key]

    def _ours(self, rate_bps: int, runs: int | None = None) -> dict[str, Entry]:
        return {rows.OURS: Entry(partial(Downburst, rate_bps=rate_bps), runs or self._runs)}

    def _packaged(self, rate_bps: int | None, *, only_uftp: bool = False) -> dict[str, Entry]:
        """Programs that Debian packages. They take longest and vary least, so they run half as often."""
        found, runs = {}, max(1, self._runs // 2)
        if self._has("uftp", lambda: has_package("uftp", "uftp", self.notes)):
            found[rows.UFTP] = Entry(partial(Uftp, rate_bps=rate_bps), runs)
        if not only_uftp and self._has("udpcast", lambda: has_package("udp-sender", "udpcast", self.notes)):
            found[rows.UDPCAST] = Entry(partial(Udpcast, rate_bps=rate_bps), runs)
        if not only_uftp and self._has("norm", lambda: has_norm(self.notes)):
            found[rows.NORM] = Entry(partial(Norm, rate_bps=rate_bps), runs)
        return found

    @cache  # noqa: B019 (one measurement, one object)
    def _has(self, _name: str, install: Callable[[], bool]) -> bool:
        return install()


def _hosts(sites: int) -> tuple[str, ...]:
    return (HUB, *(f"site{number}" for number in range(sites)))


CASES_OF_ROW_4 = (rows.NO_LOSS, rows.ONE_AT_ALL, rows.FIVE_AT_ALL)
ASKED_BPS = LINK_BPS = 100_000_000
CARRIED_BPS = 30_000_000
SECONDS_AT_ASKED_RATE = 6
BELOW_LINK_BPS = 97_000_000
FAST_BPS = 2_000_000_000
FRAME_BITS_PER_PRODUCT_BIT = 1.075
"""A full frame is 1,498 bytes, 1,395 of them a product's: a leg's rate counts frames, row 3 asks for product bits."""
GIGABIT_BUFFER_BYTES = 1_000_000
"""The part of its shared memory that a gigabit switch may give to a port."""
LOOPS_PER_CORE = 2
MESSAGES_PER_S = 5_000
FULL = Amounts(
    asked_bytes=64_000_000,
    fast_bytes=192_000_000,
    narrow_bytes=24_000_000,
    narrow_bytes_of_twenty=8_000_000,
    message_seconds=8,
    minute_seconds=60,
    tenfold_seconds=30,
)
