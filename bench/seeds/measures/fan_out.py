"""Rows of one product to many sites: unicast, multicast, losses, and a recorded feed on a narrow line."""

from functools import partial
from pathlib import Path

from bench.harness.delivery import HUB, Delivery
from bench.harness.report import Goal, Row, median
from bench.harness.turns import Entry, Turns
from bench.multicast import busiest_minute, rows
from bench.peers.tcp_fan_out import TcpFanOut
from bench.product.multicast_leg import Downburst
from bench.seeds import feeds
from bench.seeds.measures.group import NETWORK, Group, Wanted
from bench.seeds.models import copies, egress_ratio, multicast_s, unicast_s
from bench.unicast import many
from downburst.recordings.traces import Arrival
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.queues import Order
from downburst_scheduler.models.rates import PathFacts
from downburst_scheduler.models.transports import multicast, unicast
from kit.namespaces import Lab

M = 1_000_000


def losses(directory: Path, wanted: Wanted) -> list[Row]:
    """Seven sites at 100 Mb/s: without loss, with 1 % at all, with 5 % at one."""
    size = wanted.of(32, 64) * M
    found = {
        case: _seven(directory, wanted, case, size) for case in (rows.NO_LOSS, rows.ONE_AT_ALL, rows.FIVE_AT_ONE)
    }
    clean, lossy = found[rows.NO_LOSS], found[rows.ONE_AT_ALL]
    others, _, itself = rows.rows_of_one_slow(rows.FIVE_AT_ONE, found[rows.FIVE_AT_ONE], clean)
    complete = 100 * min(len(run.took_s) / len(rows.SITES) for run in lossy[rows.OURS])
    kept = rows.goodput_kept(lossy, clean)(rows.OURS)
    case = f"{rows.ONE_AT_ALL}, 7 sites, 100 Mb/s asked"
    return [
        Row("D11", others.case, others.unit, others.ours, "-", None, wanted.runs, others.goal),
        Row("D12", itself.case, itself.unit, itself.ours, "-", None, wanted.runs, itself.goal),
        Row("D15", f"{case}: sites with all data", "%", complete, "factor 50", 97.5, wanted.runs, _AT_LEAST),
        Row("D16", f"{case}: goodput", "of loss-free", kept, "FMTP", 0.974, wanted.runs, Goal("ratio", ">=", 0.97)),
    ]


def gigabit(directory: Path, wanted: Wanted) -> list[Row]:
    """Seven sites on links of 1 Gb/s, 600 and 800 Mb/s of product bits asked."""
    size = wanted.of(96, 192) * M
    with Lab(_hosts(7), segments=False) as lab:
        for host in lab.hosts:
            lab.rate(host, up_bps=1_000 * M, down_bps=1_000 * M, buffer_bytes=M)
        slow, fast = (_on_leg(directory, wanted, lab, size, round(asked * M * FRAMED)) for asked in (600, 800))
    case = "links of 1 Gb/s, 7 sites"
    goodput = median(run.goodput_bps() for run in slow) / M
    published = Goal("ratio", ">=", 574.6 / 600)
    return [
        Row("D10", f"{case}, 600 Mb/s asked: goodput", "Mb/s", goodput, "asked", 600, wanted.runs, published),
        Row("D13", f"{case}, 600 Mb/s asked: repairs", "%", _repairs(slow), "VCMTP", 0.26, wanted.runs, _AT_MOST),
        Row("D14", f"{case}, 800 Mb/s asked: repairs", "%", _repairs(fast), "VCMTP", 11.04, wanted.runs, _AT_MOST),
    ]


def twenty_four(directory: Path, wanted: Wanted) -> list[Row]:
    """One product to 24 sites from an egress of 20 Mb/s: unicast, multicast and plain TCP, in turns."""
    size = wanted.of(1_250_000, 2_500_000)
    contenders = {
        UNICAST: Entry(partial(Downburst, rate_bps=None), wanted.runs),
        MULTICAST: Entry(partial(Downburst, rate_bps=LEG_BPS), wanted.runs),
        TCP: Entry(TcpFanOut, wanted.runs),
    }
    with Lab(_hosts(MANY)) as lab:
        lab.rate(HUB, up_bps=EGRESS_BPS)
        runs = Turns(directory, wanted.notes).take("24 sites, 20 Mb/s", lab, contenders, size)
    sent = {name: median(run.sent_share for run in found) for name, found in runs.items()}
    last_s = {name: median(map(last_site_s, found)) for name, found in runs.items()}
    even = median(median(run.took_s.values()) / max(run.took_s.values()) for run in runs[UNICAST])
    return [*_copies(sent, wanted.runs), *_gains(sent, last_s, wanted.runs), *_last(even, last_s, size, wanted.runs)]


def busiest(directory: Path, wanted: Wanted) -> list[Row]:
    """The busiest part of an hour of NGRID to six sites, 100 Mb/s at the sender, by unicast and by multicast."""
    arrivals = busiest_minute.minute(BUSIEST_S, wanted.notes)
    found: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(wanted.runs):
        for way, means_ms in found.items():
            with Lab(_hosts(6)) as lab:
                run = partial(busiest_minute.played, lab, arrivals=arrivals, multicast=way)
                waits = Turns(directory, wanted.notes).second_try(f"busiest part, multicast {way}", run)
            means_ms.append(waits.mean_ms)
    case = f"busiest {BUSIEST_S:.0f} s of NGRID's hour, 6 sites, 100 Mb/s: mean latency, unicast over multicast"
    ratio, model = median(found[False]) / median(found[True]), _waits(arrivals)
    return [Row("D19", case, "times", ratio, "model", model, wanted.runs, Goal("ratio", "1 +-", 0.5))]


def sites_of_the_idd(directory: Path, wanted: Wanted) -> list[Row]:
    """Live sessions of 570 sites at the product rate of the IDD."""

    def run(place: Path) -> many.Crowd:
        with Lab(_hosts(1), segments=False) as lab:
            return many.crowd(lab, place, sites=570, seconds=wanted.of(10, 30))

    crowd = Turns(directory, wanted.notes).second_try("570 sites", run)
    needed = 420_000 / 3_600 * 46.8
    rate = Row(
        "D6", "570 sites: deliveries", "1/s", crowd.deliveries_per_s, "IDD", needed, 1, Goal("ratio", ">=", 0.8)
    )
    return [
        rate,
        Row("D6", "the same: p99 of the latency", "ms", crowd.p99_ms, "-", None, 1, Goal("ours", "<=", 100)),
    ]


def last_site_s(run: Delivery) -> float:
    """The time of the last site; a run without all sites is no result."""
    sites = len(run.links) - 1
    if len(run.took_s) < sites:
        raise RuntimeError(f"{sites - len(run.took_s)} of {sites} sites stayed incomplete")
    return max(run.took_s.values())


def _copies(sent: dict[str, float], runs: int) -> list[Row]:
    """Measured bytes for each site, at the scale of the published fan-outs."""
    each = sent[UNICAST] / MANY
    conduit, nexrad2 = copies(feeds.conduit(), 104, peak=True), copies(feeds.nexrad2(), 55, peak=True)
    case = f"bytes of unicast to {MANY} sites, scaled to"
    near = Goal("ratio", "1 +-", 0.1)
    return [
        Row("D3", f"{case} 104", "Mb/s", each * 104 * 250 * 8 / 60, "model", conduit, runs, near),
        Row("D4", f"{case} 55", "Mb/s", each * 55 * 58 * 8 / 60, "model", nexrad2, runs, near),
        Row("D7", f"{case} UCAR", "times", each * 46.8, "published", 46.8, runs, near),
    ]


def _gains(sent: dict[str, float], last_s: dict[str, float], runs: int) -> list[Row]:
    less, model = sent[UNICAST] / sent[MULTICAST], egress_ratio(MANY)
    sooner, predicted = last_s[UNICAST] / last_s[MULTICAST], _predicted_s(UNICAST) / _predicted_s(MULTICAST)
    case = f"{MANY} sites, egress 20 Mb/s"
    beside_tcp = last_s[TCP] / last_s[MULTICAST]
    saved = 100 * (1 - 1 / less)
    return [
        Row("D17", f"{case}: bytes, unicast over multicast", "times", less, "model", model, runs, _NO_LESS_THAN_MPUP),
        Row("W19", f"{case}: bytes, unicast over multicast", "times", less, "MPUP", 350 / 21.4, runs, _AT_LEAST),
        Row("D18", f"{case}: last site, unicast over multicast", "times", sooner, "model", predicted, runs, _THREE),
        Row("W2", f"{case}: last site, plain TCP over multicast", "times", beside_tcp, "example", 5, runs, _AT_LEAST),
        Row("D20", f"{case}: bytes saved", "%", saved, "DRFSM", 90, runs, _AT_LEAST),
    ]


def _last(even: float, last_s: dict[str, float], size: int, runs: int) -> list[Row]:
    case, predicted_s = f"{MANY} sites, egress 20 Mb/s, unicast", size / 1_250_000 * _predicted_s(UNICAST)
    return [
        Row("D8", f"{case}: last site", "s", last_s[UNICAST], "model", predicted_s, runs, Goal("ratio", "1 +-", 0.2)),
        Row("D9", f"{case}: median over last site", "", even, "model", 1.0, runs, Goal("ratio", ">=", 0.8)),
    ]


def _predicted_s(way: str) -> float:
    """The models' time of the last site for 1.25 MB, in bits of frames."""
    usable_bps = EGRESS_BPS / FRAMED
    if way == UNICAST:
        return unicast_s(MANY, size_bytes=1_250_000, egress_bps=usable_bps)
    return multicast_s(MANY, size_bytes=1_250_000, rate_bps=LEG_BPS / FRAMED)


def _waits(trace: list[Arrival]) -> float:
    """The models' mean latency by unicast over that by multicast."""
    arrivals, sites = Arrivals.of_trace(trace), [PathFacts()] * 6
    apart = unicast(arrivals, sites, egress_bps=busiest_minute.USABLE_BPS, order=Order.FIRST_COME)
    together = multicast(arrivals, sites, rate_bps=busiest_minute.LEG_BPS / FRAMED)
    return apart.latencies.together.mean / together.latencies.together.mean


def _seven(directory: Path, wanted: Wanted, case: str, size: int) -> rows.Runs:
    with Lab(_hosts(7)) as lab:
        for site, percent in rows.LOSSES[case].items():
            lab.loss(site, percent, protocols=("udp", "tcp"))
        return {rows.OURS: _on_leg(directory, wanted, lab, size, 100 * M)}


def _on_leg(directory: Path, wanted: Wanted, lab: Lab, size: int, rate_bps: int) -> list[Delivery]:
    ours = {rows.OURS: Entry(partial(Downburst, rate_bps=rate_bps), wanted.runs)}
    case = f"multicast at {rate_bps / M:.0f} Mb/s"
    return Turns(directory, wanted.notes).take(case, lab, ours, size)[rows.OURS]


def _repairs(runs: list[Delivery]) -> float:
    return median(100 * (run.accounted_repair_bytes or 0) / run.product_bytes for run in runs)


def _hosts(sites: int) -> tuple[str, ...]:
    return (HUB, *(f"site{number}" for number in range(sites)))


FRAMED = 1.075
"""Bits of frames for each of a product's."""
BUSIEST_S = 15.0
MANY, EGRESS_BPS, LEG_BPS = 24, 20 * M, 19_500_000
UNICAST, MULTICAST, TCP = "unicast", "multicast", "plain TCP"
_AT_LEAST, _AT_MOST = Goal("ratio", ">=", 1.0), Goal("ratio", "<=", 1.0)
_THREE, _NO_LESS_THAN_MPUP = Goal("ours", ">=", 3), Goal("ours", ">=", 16.4)
GROUPS = {
    "losses": Group(("D11", "D12", "D15", "D16"), losses, (*NETWORK, "nft-numgen")),
    "gigabit": Group(("D10", "D13", "D14"), gigabit, NETWORK),
    "twenty-four": Group(("D3", "D4", "D7", "D8", "D9", "D17", "D18", "D20", "W2", "W19"), twenty_four, NETWORK),
    "busiest": Group(("D19",), busiest, NETWORK),
    "sites": Group(("D6",), sites_of_the_idd, NETWORK),
}
