"""Probes over TCP between a hub's node and a site: the cost of one lost packet, and congestion controls side by side.

The recovery time of a constant rate R after a loss is that of the study (tcpdelay)::

    T = repair + backlog / (peak - R)

* *repair*: from the time at which the first late record was due to the greatest delay. Duplicate acknowledgements
  tell TCP of the loss, and the receiver holds back all that came behind the lost segment until the repeated one is
  there: one round trip after the lost one would have been.
* *backlog*: the frames that still wait in the sender once those are released. None where the window after the loss
  still allows R within a round trip.
* *peak*: the rate at which the sender catches up, the path's rate c. It is c only for a connection that knows c:
  whose window (CUBIC, Reno) or estimate (BBR) was formed while the path was full. The slow start fills it here, as
  the first records wait for it: five seconds at the rate itself are warm-up enough.

Found by experiment: with a buffer of one round trip at c, all three know c after the slow start, and a loss at 0.8 c
costs the repair alone, as the window after it still holds R in flight. At 0.98 c the delay returns there within
seconds: half of a window of two round trips is c. With a buffer of a quarter, Reno's window after a loss is below
0.98 c, the headroom of 0.02 c never makes up for the regrowth, and the delay does not return.
"""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

from kit.capabilities import needs, skip
from kit.node import HubNode, Line, NodeError
from kit.probed_path import ProbedPath, probed_path
from kit.wire import Lane, Wire, WireReport

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]

WIRE_BPS = 20_000_000
ROUND_TRIP_US = 40_000
BUFFER_BYTES = WIRE_BPS // 8 * ROUND_TRIP_US // 1_000_000
RECORD_BYTES = 1_448
FRAME_BITS = (RECORD_BYTES + 70) * 8
CONTROLS = ("cubic", "bbr", "reno")
DIRECTIONS = ("out", "in")
WARM_UP_S = 5
SLACK_US = 50_000
LONGEST_LAG_US = 10_000


@dataclass(frozen=True)
class Scene:
    """A hub and a site with a wire between them, and one probe of it."""

    path: ProbedPath

    @property
    def hub(self) -> HubNode:
        return self.path.hub

    @property
    def wire(self) -> Wire:
        return self.path.wire

    def begin(self, **fields: object) -> None:
        self.path.begin("p", **fields)

    def ended(self, seconds: float = 60.0) -> Line:
        return self.path.ended("p", seconds)

    def run(self, **fields: object) -> tuple[Line, WireReport]:
        self.begin(**fields)
        ended = self.ended(300.0)
        return ended, self.wire.stop()


def lanes(direction: str, every: int | None, buffer_bytes: int) -> tuple[Lane, Lane]:
    """Both directions of the wire; in that of the probe each n-th data frame is lost."""
    clean = Lane(rate_bps=WIRE_BPS, delay_ms=ROUND_TRIP_US / 2_000, buffer_bytes=buffer_bytes)
    lossy = Lane(WIRE_BPS, ROUND_TRIP_US / 2_000, every=every, buffer_bytes=buffer_bytes)
    return (lossy, clean) if direction == "out" else (clean, lossy)


def stand(
    stack: ExitStack,
    directory: Path,
    direction: str = "out",
    every: int | None = None,
    buffer_bytes: int = BUFFER_BYTES,
) -> Scene:
    needs("root", "netns", "veth", "bridge", "tun")
    to_site, to_hub = lanes(direction, every, buffer_bytes)
    return Scene(probed_path(stack, directory, to_site=to_site, to_hub=to_hub))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        yield stand(stack, tmp_path)


def constant(share: float, seconds: float, **fields: object) -> dict[str, object]:
    steps = [{"rate_bps": round(WIRE_BPS * share), "duration_ms": round(seconds * 1_000)}]
    return {"kind": "cbr", "transport": "tcp", "packet_bytes": RECORD_BYTES, "steps": steps, **fields}


def one_loss(
    directory: Path, direction: str, control: str, share: float, after_s: float, buffer_bytes: int = BUFFER_BYTES
) -> tuple[Line, WireReport]:
    """Run a constant rate that loses one frame after the warm-up: the n-th of fewer than 2 n."""
    every = round(WIRE_BPS * share / FRAME_BITS * WARM_UP_S)
    assert after_s < WARM_UP_S
    with ExitStack() as stack:
        scene = stand(stack, directory, direction, every, buffer_bytes)
        fields = constant(share, WARM_UP_S + after_s, congestion=control, direction=direction)
        ended, wire = scene.run(**fields)
    lossy = wire.to_right if direction == "out" else wire.to_left
    print(f"{control} at {share} c, {direction}: wire {lossy}")
    print(
        f"{ended['congestion']}, {ended['retransmits']} repeated, lag {ended['sender_lag_us']} us: {ended['excess']}"
    )
    assert (ended["outcome"], ended["congestion"], lossy.lost_frames) == ("done", control, 1)
    assert ended["steps"][0]["lost"] == 0
    return ended, wire


def after_the_loss(ended: Line) -> Line:
    """The run of late records with the lost one, if the machine and not the connection did not delay the sender."""
    lag_us = ended["sender_lag_us"]
    if lag_us > LONGEST_LAG_US:
        skip(f"the sender ran {lag_us} us late, more than {LONGEST_LAG_US} us: machine too busy to judge")
    lost_us = WARM_UP_S * 1e6
    late: list[Line] = ended["excess"]
    runs = [run for run in late if run["recovery_us"] is None or lasts_to(run) > lost_us - SLACK_US]
    runs = [run for run in runs if run["at_us"] < lost_us + SLACK_US]
    assert len(runs) == 1, "one run contains the loss"
    return runs[0]


def lasts_to(run: Line) -> float:
    return float(run["at_us"] + run["recovery_us"])


def recovered(ended: Line) -> Line:
    run = after_the_loss(ended)
    assert run["excess_us"] >= ROUND_TRIP_US
    assert run["recovery_us"] is not None
    assert run["predicted_us"] is not None
    return run


def stalled_us(ended: Line, wire: WireReport, share: float) -> float:
    """The time that the machine may have added to a recovery: records that left late are a backlog as well.

    A stall of `lag` leaves `lag` x R; with a headroom of c - R its records are on time after `lag` x c / (c - R).
    """
    lane_us = max(wire.to_left.lag_max_us, wire.to_right.lag_max_us)
    return float(max(ended["sender_lag_us"], lane_us) / (1 - share))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_after_one_loss_a_constant_rate_below_the_path_recovers_in_the_time_of_the_formula(
    tmp_path: Path, direction: str
) -> None:
    ended, wire = one_loss(tmp_path, direction, "cubic", 0.8, after_s=2)
    wire.needs_small_lag()
    run = recovered(ended)
    assert run["predicted_us"] <= 1.3 * run["recovery_us"]
    assert run["predicted_us"] + stalled_us(ended, wire, 0.8) >= 0.7 * run["recovery_us"]


def test_after_one_loss_a_constant_rate_at_the_path_does_not_return(tmp_path: Path) -> None:
    ended, wire = one_loss(tmp_path, "out", "reno", 0.98, after_s=4, buffer_bytes=BUFFER_BYTES // 4)
    wire.needs_small_lag()
    run = after_the_loss(ended)
    assert run["excess_us"] >= ROUND_TRIP_US
    assert run["recovery_us"] is None


@pytest.mark.nightly
@pytest.mark.parametrize("control", CONTROLS)
def test_medians_of_three_losses_recover_in_the_time_of_the_formula(tmp_path: Path, control: str) -> None:
    ratios = []
    for turn in range(3):
        ended, wire = one_loss(tmp_path / str(turn), "out", control, 0.8, after_s=3)
        wire.needs_small_lag()
        run = recovered(ended)
        ratios.append(run["predicted_us"] / run["recovery_us"])
    print(f"{control}: predicted / recovered {ratios}")
    assert 0.7 <= median(ratios) <= 1.3


def trials(names: Sequence[str], duration_ms: int) -> list[dict[str, object]]:
    """Each alone and each pair, also beside reverse traffic of the first."""
    alone = [[name] for name in names]
    pairs = [list(pair) for pair in itertools.combinations_with_replacement(names, 2)]
    both: list[list[str]] = [[], list(names[:1])]
    return [
        {"flows": flows, "reverse": reverse, "duration_ms": duration_ms}
        for flows in alone + pairs
        for reverse in both
    ]


def table(ended: Line) -> str:
    """Rows of shares, fairness and repeated segments."""
    rows = ["flows | reverse | Mb/s of each | Jain | repeated | mean round trips, ms"]
    for trial in ended["trials"]:
        flows = [flow for flow in trial["flows"] if not flow["reverse"]]
        names = " + ".join(flow["congestion"] for flow in flows) or str(trial["reason"])
        rates = " + ".join(f"{flow['goodput_bps'] / 1e6:.1f}" for flow in flows)
        back = ", ".join(f"{flow['goodput_bps'] / 1e6:.1f}" for flow in trial["flows"] if flow["reverse"])
        jain = "-" if trial["fairness"] is None else f"{trial['fairness']:.2f}"
        repeated = " + ".join(str(flow["retransmits"]) for flow in flows)
        trips = " + ".join(f"{flow['round_trip_us']['mean'] / 1e3:.0f}" for flow in flows)
        rows.append(f"{names} | {back or '-'} | {rates} | {jain} | {repeated} | {trips}")
    return "\n".join(rows)


def check_trials(ended: Line, asked: Sequence[object]) -> None:
    assert ended["outcome"] == "done"
    assert (ended["steps"], ended["excess"]) == ([], None)
    assert len(ended["trials"]) == len(asked)
    for trial in ended["trials"]:
        forward = [flow for flow in trial["flows"] if not flow["reverse"]]
        assert trial["reason"] is None
        assert not trial["limited"]
        assert all(flow["goodput_bps"] > 0 and flow["retransmits"] is not None for flow in trial["flows"])
        assert sum(flow["goodput_bps"] for flow in forward) <= WIRE_BPS
        if len(forward) == 2:
            assert 0.5 <= trial["fairness"] <= 1


@pytest.mark.parametrize("direction", ["out", pytest.param("in", marks=pytest.mark.nightly)])
def test_congestion_controls_share_a_bottleneck_with_and_without_reverse_traffic(
    scene: Scene, direction: str
) -> None:
    asked = trials(CONTROLS[:2], 600)
    ended, wire = scene.run(kind="stacks", direction=direction, rate_bps=5 * WIRE_BPS, trials=asked)
    print(table(ended))
    wire.needs_small_lag()
    check_trials(ended, asked)


@pytest.mark.nightly
def test_every_congestion_control_alone_and_in_pairs_in_one_table(scene: Scene) -> None:
    asked = trials(CONTROLS, 10_000)
    ended, wire = scene.run(kind="stacks", direction="out", rate_bps=5 * WIRE_BPS, trials=asked)
    print(table(ended))
    wire.needs_small_lag()
    check_trials(ended, asked)
    for trial in ended["trials"]:
        if len(trial["flows"]) == 1:
            assert trial["flows"][0]["goodput_bps"] >= 0.8 * WIRE_BPS


def test_a_congestion_control_that_an_end_lacks_is_named_and_a_limit_shows(scene: Scene) -> None:
    for direction, place in (("out", "this node"), ("in", "the site")):
        with pytest.raises(NodeError, match=f"nonesuch is not available at {place}"):
            scene.begin(**constant(0.5, 1, congestion="nonesuch", direction=direction))
    asked = [
        {"flows": ["nonesuch"], "reverse": [], "duration_ms": 500},
        {"flows": ["cubic"], "reverse": ["nonesuch"], "duration_ms": 500},
        {"flows": ["cubic"], "reverse": [], "duration_ms": 1_500},
    ]
    scene.begin(kind="stacks", direction="in", rate_bps=WIRE_BPS // 4, trials=asked)
    ended = scene.ended()
    far, here, limited = ended["trials"]
    assert far["reason"] == "the congestion control nonesuch is not available at far"
    assert here["reason"] == "the congestion control nonesuch is not available at this node"
    assert limited["limited"]
    assert limited["flows"][0]["goodput_bps"] <= 1.1 * WIRE_BPS / 4


@pytest.mark.parametrize("kind", ["soak", "stacks"])
def test_a_probe_over_tcp_ends_within_a_second_of_its_stop(scene: Scene, kind: str) -> None:
    if kind == "soak":
        scene.begin(**{**constant(0.5, 600, direction="in"), "kind": "soak", "seconds": True})
        scene.hub.wait_event(event="probe-second", probe="p")
    else:
        asked = [{"flows": ["cubic"], "reverse": ["cubic"], "duration_ms": 60_000}]
        scene.begin(kind="stacks", direction="out", rate_bps=WIRE_BPS, trials=asked)
    scene.hub.do("probe-stop", probe="p", reason="products are late")
    ended = scene.ended(5.0)
    assert (ended["outcome"], ended["reason"]) == ("stopped", "products are late")
    if kind == "soak":
        assert [step["received"] > 0 for step in ended["steps"]] == [True], "the figures so far are kept"
