"""Why a product was slow: each part with a number, the largest first."""

from dataclasses import replace

import pytest

from downburst.deliveries import CircuitNow, Factor, FactorName, PathNow, ReceiptFacts, TcpThen, factors
from downburst.domain.circuits import CircuitState
from downburst.domain.events import LegTraffic
from downburst.domain.latency import SiteClock
from downburst.domain.plans import Transport
from downburst.live.repairs import TELLING_BYTES, LegRepairs, Repairs
from unit.deliveries.cases import PRODUCT, SITE, after, judged, receipt


def found(path: PathNow, received: ReceiptFacts | None = None) -> dict[FactorName, Factor]:
    """The parts of the product's time, in their order."""
    delivery = judged(replace(SITE, receipts=() if received is None else (received,)))
    return {factor.name: factor for factor in factors(PRODUCT, delivery, path)}


def test_every_stage_has_its_time_and_the_largest_comes_first() -> None:
    parts = found(PathNow(round_trip_ms=20.0), receipt())
    assert [(name.value, part.ms) for name, part in parts.items()] == [
        ("origin", 200.0),
        ("transport", 60.0),
        ("queue", 10.0),
        ("disk", 5.0),
        ("action", 3.0),
        ("clock", 2.0),
    ]
    assert parts[FactorName.TRANSPORT].sentence == (
        "12 MB were 60.0 ms ± 2.0 ms on the line, by unicast; a round trip takes 20.0 ms"
    )
    assert parts[FactorName.CLOCK].sentence == "times across both clocks are known to within 2.0 ms"
    late = found(PathNow(), receipt(first_byte_at=after(900), last_byte_at=after(960), site_stored_at=after(965)))
    assert next(iter(late)) is FactorName.QUEUE


def test_repair_counts_with_its_share_of_the_time_on_the_line() -> None:
    path = PathNow(resent_share=0.05, repair_share=0.5)
    by_unicast, by_group = found(path, receipt()), found(path, receipt(transport=Transport.MULTICAST))
    assert by_unicast[FactorName.REPAIR].share == 0.05
    assert by_unicast[FactorName.REPAIR].ms == pytest.approx(3.0)
    assert by_unicast[FactorName.REPAIR].sentence == "5 % of the segments to this site go twice"
    assert by_group[FactorName.REPAIR].ms == pytest.approx(30.0)
    assert by_group[FactorName.REPAIR].sentence == "50 % of the bytes of its multicast leg repair losses"
    assert FactorName.REPAIR not in found(PathNow(), receipt())


@pytest.mark.parametrize(
    ("transport", "ms", "said"),
    [
        (Transport.STATIC_CIRCUIT, 15.0, "circuit 3 is degraded; it carries 75 % of its reserved 100 Mb/s"),
        (Transport.MULTICAST, None, "circuit 3 is degraded; it carries 75 % of its reserved 100 Mb/s"),
        (
            Transport.UNICAST,
            None,
            "circuit 3 is degraded, and this product went without it; it carries 75 % of its reserved 100 Mb/s",
        ),
    ],
)
def test_only_a_product_that_went_by_circuits_owes_them_time(
    transport: Transport, ms: float | None, said: str
) -> None:
    circuit = CircuitNow(3, CircuitState.DEGRADED, 100_000_000, 75_000_000)
    part = found(PathNow(circuits=(circuit,)), receipt(transport=transport))[FactorName.CIRCUIT]
    assert (part.ms, part.share, part.sentence) == (ms, 0.75, said)


def test_the_leading_limit_of_tcp_counts_with_its_share_of_the_time_on_the_line() -> None:
    tcp = TcpThen("network-loss", 0.62)
    part = found(PathNow(tcp=tcp), receipt())[FactorName.TCP]
    assert part.ms == pytest.approx(37.2)
    assert part.sentence == "network loss limited TCP for 62 % of the time with bytes to send"
    unable = found(PathNow(tcp=TcpThen(unable="the kernel has no sock_diag")), receipt())[FactorName.TCP]
    assert (unable.ms, unable.sentence) == (None, "the limits of TCP are not known: the kernel has no sock_diag")
    assert FactorName.TCP not in found(PathNow(tcp=TcpThen()), receipt())
    assert FactorName.TCP not in found(PathNow(tcp=tcp))


def test_what_is_not_measured_says_so_and_comes_last() -> None:
    circuit = CircuitNow(3, CircuitState.VERIFYING, 100_000_000)
    parts = found(PathNow(circuits=(circuit,)), receipt(transport=Transport.STATIC_CIRCUIT))
    assert list(parts)[-1] is FactorName.CIRCUIT
    assert parts[FactorName.CIRCUIT].sentence == "circuit 3 is verifying; its rate is not measured yet"


def test_a_product_without_a_receipt_has_only_the_state_of_the_path() -> None:
    parts = found(PathNow(resent_share=0.1))
    assert [(name, part.ms, part.share) for name, part in parts.items()] == [(FactorName.REPAIR, None, 0.1)]


def test_clocks_that_were_not_compared_leave_out_what_crosses_them() -> None:
    parts = found(PathNow(), receipt(clock_offset_us=None, clock_bound_us=None))
    assert set(parts) == {FactorName.ORIGIN, FactorName.QUEUE, FactorName.DISK, FactorName.ACTION}


def test_a_site_whose_clock_nothing_keeps_in_step_is_named_beside_the_bound() -> None:
    loose = SiteClock(synchronised=False, error_us=16_000_000, estimated_error_us=16_000_000)
    sentence = found(PathNow(site_clock=loose), receipt())[FactorName.CLOCK].sentence
    assert sentence.startswith("times across both clocks are known to within 2.0 ms; the site's clock is not synch")
    kept = replace(loose, synchronised=True, error_us=900)
    assert found(PathNow(site_clock=kept), receipt())[FactorName.CLOCK].sentence.endswith("within 2.0 ms")


def leg(sent: int, repaired: int, number: int = 1) -> LegTraffic:
    """A second of a leg."""
    return LegTraffic(number, "NGRID", sent, repaired, 1, sent - repaired, 4, 0, Transport.MULTICAST)


def test_the_repair_of_a_leg_is_known_once_enough_was_sent_and_forgotten_with_the_leg() -> None:
    repairs = LegRepairs()
    repairs.seen([leg(TELLING_BYTES // 2, 0)])
    assert repairs.share(1) is None
    repairs.seen([leg(TELLING_BYTES, TELLING_BYTES // 10), leg(0, 0, 2)])
    assert repairs.share(1) == pytest.approx(0.1 / 1.495, rel=1e-3)
    for _ in range(600):
        repairs.seen([leg(0, 0)])
    assert repairs.share(1) == pytest.approx(0.1 / 1.495, rel=1e-3), "silence changes nothing"
    for _ in range(1200):
        repairs.seen([leg(TELLING_BYTES, 0)])
    assert repairs.share(1) == pytest.approx(0, abs=1e-4)
    repairs.seen([])
    assert repairs.share(1) is None


def test_repair_is_measured_against_products_too_and_of_groups_alone() -> None:
    repairs = Repairs(telling_bytes=1000)
    assert (repairs.of_sent, repairs.of_products) == (None, None)
    repairs.add(leg(1250, 250))
    assert (repairs.of_sent, repairs.of_products) == (0.2, 0.25)
    repairs.add(replace(leg(5000, 0), transport=Transport.UNICAST))
    assert repairs.of_sent == 0.2
    repairs.add(leg(1000, 1000))
    assert repairs.of_products is None, "the products of the second before have faded below the least that tells"
