"""From runs to rows: files by multicast, the figures that are compared in each case, and their goals."""

from collections.abc import Callable, Mapping, Sequence

from bench.harness.delivery import Delivery
from bench.harness.report import Goal, Row, median

Runs = Mapping[str, Sequence[Delivery]]
"""Deliveries by the name of the contender."""
Measure = Callable[[str], float]
"""A figure of a contender."""

OURS, UFTP, UDPCAST, NORM = "downburst", "uftp", "udpcast", "NORM"
TLS, SENDFILE = "TLS fan-out", "sendfile fan-out"
BLASTER, LIKE_US = "blaster", "blaster, AEAD and hash"

SITES = tuple(f"site{number}" for number in range(7))
SLOW = SITES[3]
NO_LOSS, ONE_AT_ALL, FIVE_AT_ALL = "no loss", "1 % at all", "5 % at all"
FIVE_AT_ONE, HALF_AT_ONE = "5 % at one site", "half-rate link at one site"
LOSSES: Mapping[str, Mapping[str, float]] = {
    NO_LOSS: {},
    ONE_AT_ALL: dict.fromkeys(SITES, 1.0),
    FIVE_AT_ALL: dict.fromkeys(SITES, 5.0),
    FIVE_AT_ONE: {SLOW: 5.0},
    HALF_AT_ONE: {},
}
"""Per case the loss in per cent by site."""

TITLES = {
    "1": "7 sites, no loss, as fast as it goes, files: goodput",
    "2": "CPU per delivered byte, encrypted (measured with row 1)",
    "3": "1 Gb/s links, 600 and 900 Mb/s asked: goodput in product bits",
    "4": "independent loss at all sites, 1 % and 5 %, 100 Mb/s",
    "5": "repair share at 20 sites against 7, 1 % loss",
    "6": "one site with 5 % loss, or with a half-rate link",
    "7": "sender link as narrow as a receiver's, 7 and 20 sites",
    "8": "two busy loops per core beside the receivers, 100 and 300 Mb/s",
    "9": "messages of 2 kB, 5,000/s to 7, beside core NATS",
    "10": "the same at 1 % loss",
    "11": "NGRID's busiest minute, 100 Mb/s sender link",
    "12": "500 simulated receivers",
    "13": "NGRID at ten times its rate to 8 sites, one busy loop beside",
    "14": "56 Mb/s into a receive buffer of 64 kB beside four busy loops, by the reader's priority",
}


def rows_of_fast(runs: Runs) -> list[Row]:
    """Rows 1 and 2, as fast as it goes."""
    goals: Mapping[str, tuple[Goal | None, Goal | None]] = {
        LIKE_US: (Goal("ratio", ">=", 0.8), None),
        BLASTER: (Goal("ratio", ">=", 0.5), Goal("ratio", "<=", 2)),
        UFTP: (Goal("ratio", ">=", 8), _SIXTH),
        TLS: (Goal("ratio", ">=", 1.5), None),
        SENDFILE: (None, None),
        UDPCAST: (None, None),
        NORM: (None, None),
    }
    rows = []
    for row, what, measure, unit, which in (
        ("1", "goodput per site", _goodput_mbps(runs), "Mb/s", 0),
        ("2", "CPU per delivered byte", _cpu(runs), "s/GB", 1),
    ):
        for peer, of_peer in goals.items():
            goal = of_peer[which]
            if peer in runs or goal:
                rows.append(_row((runs, measure), row, f"as fast as it goes: {what}", unit, peer, goal))
    return rows


def rows_of_gigabit(asked_bps: int, runs: Runs) -> list[Row]:
    """Row 3: product bits per second over the requested rate."""
    goal = Goal("ratio", ">=", {600: 0.98, 900: 0.97}[asked_bps // 1_000_000])
    goodput = _goodput_mbps(runs)(OURS)
    case = f"links of 1 Gb/s, {asked_bps // 1_000_000} Mb/s asked: goodput per site"
    return [Row("3", case, "Mb/s", goodput, "asked", asked_bps / 1e6, len(runs[OURS]), goal)]


def rows_of_asked(clean: Runs) -> list[Row]:
    """Rows 1 and 2 at 100 Mb/s, where every packet crosses the links alone."""
    goodput, cpu = (clean, _goodput_mbps(clean)), (clean, _cpu(clean))
    peers = [UFTP, *(peer for peer in (UDPCAST, NORM) if peer in clean)]
    rows = [_row(goodput, "1", "100 Mb/s asked: goodput per site", "Mb/s", peer) for peer in peers]
    goals = {UFTP: _SIXTH}
    return rows + [
        _row(cpu, "2", "100 Mb/s asked: CPU per delivered byte", "s/GB", peer, goals.get(peer)) for peer in peers
    ]


def rows_of_losses(runs: Mapping[str, Runs]) -> list[Row]:
    """Row 4."""
    clean, rows = runs[NO_LOSS], []
    for case, goodput, repair in ((ONE_AT_ALL, 0.96, 2.0), (FIVE_AT_ALL, 0.90, 8.0)):
        lossy = runs[case]
        kept, share = goodput_kept(lossy, clean), repair_percent(lossy, clean)
        for peer in (UFTP, *(peer for peer in (UDPCAST, NORM) if peer in lossy)):
            goals = (Goal("ours", ">=", goodput), Goal("ours", "<=", repair)) if peer == UFTP else (None, None)
            rows.append(_row((lossy, kept), "4", f"{case}: goodput", "of loss-free", peer, goals[0]))
            rows.append(_row((lossy, share), "4", f"{case}: repair share", "% of products", peer, goals[1]))
        rows.append(_account_against_link(lossy, f"{case}: repair share, hub's account", share(OURS)))
    return rows


def rows_of_twenty(few: tuple[Runs, Runs], many: tuple[Runs, Runs], asked: str) -> list[Row]:
    """Row 5: of (loss-free, lossy) runs at 7 and at 20 sites, with the requested rate."""
    of_few, of_many = (repair_percent(lossy, clean) for clean, lossy in (few, many))
    case, runs = f"{ONE_AT_ALL}, {asked}: repair share at 20 sites", len(many[1][OURS])
    rows = [
        Row("5", case, "% of products", of_many(OURS), "ours at 7", of_few(OURS), runs, Goal("ratio", "<=", 1.3)),
    ]
    if UFTP in many[1] and UFTP in few[1]:
        rows.append(Row("5", f"{case}, uftp", "% of products", of_many(UFTP), "uftp at 7", of_few(UFTP), runs))
    return rows


def rows_of_one_slow(case: str, slow: Runs, clean: Runs) -> list[Row]:
    """Row 6: the others keep their goodput, and the slow one gets the rate of its link."""

    def extra(name: str) -> float:
        return 100 * (_of(slow, name, _others_received) - _of(clean, name, _others_received))

    def others(name: str) -> float:
        return _kept(name, slow, clean, _others_goodput)

    def itself(name: str) -> float:
        if case == HALF_AT_ONE:
            return _of(slow, name, _slow_goodput) / HALF_BPS
        return _kept(name, slow, clean, _slow_goodput)

    of_site, limit = ("of its link", 0.9) if case == HALF_AT_ONE else ("of loss-free", 0.95)
    at_least, at_most = Goal("ours", ">=", 0.99), Goal("ours", "<=", 1.0)
    return [
        _row((slow, others), "6", f"{case}: goodput of the others", "of loss-free", UFTP, at_least),
        _row((slow, extra), "6", f"{case}: extra on the others' links", "% of products", UFTP, at_most),
        _row((slow, itself), "6", f"{case}: goodput of that site", of_site, UFTP, Goal("ours", ">=", limit)),
    ]


def rows_of_narrow(sites: int, runs: Runs) -> list[Row]:
    """Row 7."""
    goal = Goal("ratio", ">=", {7: 6.3, 20: 17}[sites])
    return [_row((runs, _goodput_mbps(runs)), "7", f"links of 100 Mb/s, {sites} sites: goodput", "Mb/s", TLS, goal)]


def rows_of_busy(asked_bps: int, busy: Runs, idle: Runs) -> list[Row]:
    """Row 8: against the same without the loops."""
    case, runs = f"busy loops, {asked_bps // 1_000_000} Mb/s asked", len(busy[OURS])
    with_loops, without = (_of(it, OURS, Delivery.goodput_bps) / 1e6 for it in (busy, idle))
    dropped = max(run.overruns for run in busy[OURS])
    repaired = _of(busy, OURS, _accounted_percent)
    none, rate = Goal("ours", "<=", 0), Goal("ratio", ">=", 0.95)
    return [
        Row("8", f"{case}: datagrams that overran a buffer, worst run", "", dropped, "-", None, runs, none),
        Row("8", f"{case}: repair share, hub's account", "% of products", repaired, "-", None, runs),
        Row("8", f"{case}: goodput per site", "Mb/s", with_loops, "without loops", without, runs, rate),
    ]


def goodput_kept(lossy: Runs, clean: Runs) -> Measure:
    """Goodput as a share of the contender's own without loss."""
    return lambda name: _kept(name, lossy, clean, Delivery.goodput_bps)


def repair_percent(lossy: Runs, clean: Runs) -> Measure:
    """The bytes that loss adds to the sender's link, in per cent of the products."""
    return lambda name: 100 * (_of(lossy, name, _sent_share) - _of(clean, name, _sent_share))


def _row(
    measured: tuple[Runs, Measure], row: str, case: str, unit: str, against: str, goal: Goal | None = None
) -> Row:
    runs, measure = measured
    completes = any(delivery.took_s for delivery in runs.get(against, ()))
    theirs = measure(against) if completes else None
    return Row(row, case, unit, measure(OURS), against, theirs, len(runs[OURS]), goal)


def _account_against_link(lossy: Runs, case: str, on_link_percent: float) -> Row:
    """Check the hub's account of its repairs against the kernel's count, which has headers, TCP and TLS in it."""
    ours = _of(lossy, OURS, _accounted_percent)
    return Row("4", case, "% of products", ours, "its link", on_link_percent, len(lossy[OURS]))


def _goodput_mbps(runs: Runs) -> Measure:
    return lambda name: _of(runs, name, Delivery.goodput_bps) / 1e6


def _cpu(runs: Runs) -> Measure:
    return lambda name: _of(runs, name, lambda delivery: delivery.cpu_s_per_delivered_gb)


def _kept(name: str, lossy: Runs, clean: Runs, figure: Callable[[Delivery], float]) -> float:
    """A figure as a share of its loss-free value; 0 where there was none."""
    loss_free = _of(clean, name, figure)
    return _of(lossy, name, figure) / loss_free if loss_free else 0.0


def _of(runs: Runs, name: str, figure: Callable[[Delivery], float]) -> float:
    return median(figure(delivery) for delivery in runs[name])


def _accounted_percent(delivery: Delivery) -> float:
    return 100 * (delivery.accounted_repair_bytes or 0) / delivery.product_bytes


def _sent_share(delivery: Delivery) -> float:
    return delivery.sent_share


def _others_goodput(delivery: Delivery) -> float:
    return delivery.goodput_bps(leaving_out=SLOW)


def _slow_goodput(delivery: Delivery) -> float:
    return delivery.goodput_of_bps(SLOW)


def _others_received(delivery: Delivery) -> float:
    return delivery.received_share(leaving_out=SLOW)


HALF_BPS = 50_000_000
_SIXTH = Goal("ratio", "<=", 1 / 6)
