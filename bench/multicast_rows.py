"""From runs to rows: which figures of which case face each other, and what they should reach."""

from collections.abc import Callable, Mapping, Sequence

from bench.delivery import Delivery
from bench.report import Goal, Row, median

Runs = Mapping[str, Sequence[Delivery]]
"""Deliveries by the name of the contender."""
Measure = Callable[[str], float]
"""A figure of a contender."""

OURS, UFTP, TCP = "downburst", "uftp", "TCP fan-out"
SITES = tuple(f"site{number}" for number in range(7))
LOSSY = SITES[3]
NO_LOSS, ONE_AT_ALL, FIVE_AT_ALL, FIVE_AT_ONE = "no loss", "1 % at all", "5 % at all", "5 % at one site"
LOSSES: Mapping[str, Mapping[str, float]] = {
    NO_LOSS: {},
    ONE_AT_ALL: dict.fromkeys(SITES, 1.0),
    FIVE_AT_ALL: dict.fromkeys(SITES, 5.0),
    FIVE_AT_ONE: {LOSSY: 5.0},
}
"""Per case the loss in per cent by site."""


def rows_of_losses(runs: Mapping[str, Runs]) -> list[Row]:
    """Rows 1 (at the asked rate), 2, 4 and 6."""
    clean = runs[NO_LOSS]
    rows = [
        _row((clean, _goodput_mbps(clean)), "1", "100 Mb/s asked: goodput per site", "Mb/s", UFTP),
        _row((clean, _cpu(clean)), "2", "100 Mb/s asked: CPU per delivered byte", "s/GB", UFTP, _SIXTH),
    ]
    for case, goodput, repair in ((ONE_AT_ALL, 0.96, 2.0), (FIVE_AT_ALL, 0.90, 8.0)):
        lossy = runs[case]
        kept, share = _goodput_kept(lossy, clean), _extra_sent_percent(lossy, clean)
        rows += [
            _row((lossy, kept), "4", f"{case}: goodput", "of loss-free", UFTP, Goal("ours", ">=", goodput)),
            _row((lossy, share), "4", f"{case}: repair share", "% of products", UFTP, Goal("ours", "<=", repair)),
            _account_against_link(lossy, f"{case}: repair share, hub's account", share(OURS)),
        ]
    return rows + _rows_of_one_lossy_site(runs[FIVE_AT_ONE], clean)


def rows_of_narrow(runs: Runs) -> list[Row]:
    """Row 7."""
    goal = Goal("ratio", ">=", 6.3)
    return [_row((runs, _goodput_mbps(runs)), "7", "links of 100 Mb/s: goodput per site", "Mb/s", TCP, goal)]


def rows_of_fast(runs: Runs) -> list[Row]:
    """Rows 1 and 2, as fast as it goes."""
    goodput, cpu = _goodput_mbps(runs), _cpu(runs)
    fast = "as fast as it goes"
    return [
        _row((runs, goodput), "1", f"{fast}: goodput per site", "Mb/s", UFTP, Goal("ratio", ">=", 8)),
        _row((runs, goodput), "1", f"{fast}: goodput per site", "Mb/s", TCP, Goal("ratio", ">=", 1.5)),
        _row((runs, cpu), "2", f"{fast}: CPU per delivered byte", "s/GB", UFTP, _SIXTH),
        _row((runs, cpu), "2", f"{fast}: CPU per delivered byte", "s/GB", TCP),
    ]


def _rows_of_one_lossy_site(lossy: Runs, clean: Runs) -> list[Row]:
    def others(name: str) -> float:
        return _kept(name, lossy, clean, _others_goodput)

    def itself(name: str) -> float:
        return _kept(name, lossy, clean, _lossy_goodput)

    def extra(name: str) -> float:
        return 100 * (_of(lossy, name, _others_received) - _of(clean, name, _others_received))

    case = FIVE_AT_ONE
    return [
        _row((lossy, others), "6", f"{case}: goodput of the others", "of loss-free", UFTP, Goal("ours", ">=", 0.99)),
        _row(
            (lossy, extra), "6", f"{case}: extra on the others' links", "% of products", UFTP, Goal("ours", "<=", 1.0)
        ),
        _row((lossy, itself), "6", f"{case}: goodput of that site", "of loss-free", UFTP, Goal("ours", ">=", 0.95)),
    ]


def _row(
    measured: tuple[Runs, Measure], row: str, case: str, unit: str, against: str, goal: Goal | None = None
) -> Row:
    runs, measure = measured
    theirs = measure(against) if against in runs else None
    return Row(row, case, unit, measure(OURS), against, theirs, len(runs[OURS]), goal)


def _account_against_link(lossy: Runs, case: str, on_link_percent: float) -> Row:
    """Check the hub's account of its repairs against the kernel's count, which has headers, TCP and TLS in it."""

    def accounted_percent(delivery: Delivery) -> float:
        return 100 * (delivery.accounted_repair_bytes or 0) / delivery.product_bytes

    ours = _of(lossy, OURS, accounted_percent)
    return Row("4", case, "% of products", ours, "its link", on_link_percent, len(lossy[OURS]))


def _goodput_mbps(runs: Runs) -> Measure:
    return lambda name: _of(runs, name, Delivery.goodput_bps) / 1e6


def _cpu(runs: Runs) -> Measure:
    return lambda name: _of(runs, name, lambda delivery: delivery.cpu_s_per_delivered_gb)


def _goodput_kept(lossy: Runs, clean: Runs) -> Measure:
    return lambda name: _kept(name, lossy, clean, Delivery.goodput_bps)


def _kept(name: str, lossy: Runs, clean: Runs, figure: Callable[[Delivery], float]) -> float:
    """A figure as a share of its loss-free value; 0 where there was none."""
    loss_free = _of(clean, name, figure)
    return _of(lossy, name, figure) / loss_free if loss_free else 0.0


def _extra_sent_percent(lossy: Runs, clean: Runs) -> Measure:
    def share(name: str) -> float:
        return 100 * (_of(lossy, name, _sent_share) - _of(clean, name, _sent_share))

    return share


def _of(runs: Runs, name: str, figure: Callable[[Delivery], float]) -> float:
    return median(figure(delivery) for delivery in runs[name])


def _sent_share(delivery: Delivery) -> float:
    return delivery.sent_share


def _others_goodput(delivery: Delivery) -> float:
    return delivery.goodput_bps(leaving_out=LOSSY)


def _lossy_goodput(delivery: Delivery) -> float:
    return delivery.goodput_of_bps(LOSSY)


def _others_received(delivery: Delivery) -> float:
    return delivery.received_share(leaving_out=LOSSY)


_SIXTH = Goal("ratio", "<=", 1 / 6)
