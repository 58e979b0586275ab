"""Rows of circuits: beside greedy flows, set-up, a cap, the round trip, shaping before a small buffer."""

from contextlib import ExitStack
from pathlib import Path

from bench.circuits.network import LINE_BPS, RATE_BPS, SMALL
from bench.harness.report import Goal, Row, median
from bench.probes.rows import round_trip_ms
from bench.seeds.measures.group import NETWORK, WIRES, Group, Wanted
from kit.circuit_bed import Bed
from kit.circuit_trials import Crowded, SmallBuffer, small_buffer, unicast_beside
from kit.namespaces import Lab
from kit.offered import median_bps, offer
from kit.wire import Lane

M = 1_000_000


def beside_flows(directory: Path, wanted: Wanted) -> list[Row]:
    """Products on a circuit of 60 Mb/s beside eight greedy flows on a line of 100 Mb/s."""
    with ExitStack() as stack:
        crowded = Crowded(directory, stack, line_bps=LINE_BPS, rate_bps=RATE_BPS)
        found = unicast_beside(crowded, flows=8, rounds=wanted.runs, size=wanted.of(12, 20) * M)
    shares = (found.protected_bps / RATE_BPS, found.exposed_bps / RATE_BPS)
    case = "circuit of 60 Mb/s beside 8 greedy flows on 100 Mb/s: rate"
    return [
        Row("C1", case, "of its own", shares[0], "not protected", shares[1], wanted.runs, Goal("ours", ">=", 0.75))
    ]


def set_up(directory: Path, wanted: Wanted) -> list[Row]:
    """Both ends of a circuit, made and ended ten times."""
    with ExitStack() as stack:
        bed = Bed(stack.enter_context(Lab(["hub", "far"])), directory, stack, rate_bps=RATE_BPS)
        took_s = []
        for _ in range(10 * wanted.runs):
            took_s.append(bed.up()["took_ms"] / 1e3)
            bed.hub.do("circuit-down", lease=17)
    case = "both ends of a circuit by the linux driver, median"
    return [Row("C2", case, "s", median(took_s), "OSCARS", 60, len(took_s), Goal("ours", "<=", 0.25))]


def beyond_the_profile(directory: Path, wanted: Wanted) -> list[Row]:
    """A quarter more than the rate of a circuit with a hard cap is offered."""
    beyond = []
    for run in range(wanted.runs):
        with ExitStack() as stack:
            lab = stack.enter_context(Lab(["hub", "far"]))
            bed = Bed(lab, directory / str(run), stack, rate_bps=CAPPED_BPS)
            if (standing := bed.up(shaped_share=1.0))["state"] != "up":
                raise RuntimeError(f"the circuit is {standing['state']}: {standing}")
            seconds = wanted.of(5, 8)
            offered = offer(lab, "hub", "far", "10.9.0.1", rate_bps=1.25 * CAPPED_BPS, seconds=seconds)
        end_s = offered.sent_at_s[0] + seconds
        came_bps, sent_bps = (
            median_bps(at_s, end_s - 3, end_s) for at_s in (offered.arrived_at_s, offered.sent_at_s)
        )
        beyond.append(1 - came_bps / sent_bps)
    case = "1.25 times the rate of a circuit with a hard cap: part that is not delivered"
    return [Row("C5", case, "", median(beyond), "out of profile", 0.2, wanted.runs, Goal("ratio", "1 +-", 0.1))]


def round_trip(directory: Path, wanted: Wanted) -> list[Row]:
    """STAMP over a wire of 36.3 ms."""
    lane = Lane(delay_ms=ROUND_TRIP_MS / 2)
    found = [round_trip_ms(directory / str(run), lane) for run in range(wanted.runs)]
    goal = Goal("ratio", "1 +-", 1 / ROUND_TRIP_MS)
    return [Row("C6", "round trip by STAMP, median", "ms", median(found), "wire", ROUND_TRIP_MS, wanted.runs, goal)]


def shaping(directory: Path, wanted: Wanted) -> list[Row]:
    """CUBIC through a buffer of 2.8 % of the bytes in flight: by itself, shaped to 0.9 and to the whole rate."""
    below, whole = (_shaped(directory / str(share), wanted, share) for share in (0.9, 1.0))
    case, runs = "50 Mb/s, 72 ms, buffer of 2.8 %, CUBIC", wanted.runs
    rate, reached = below.shaped_bps / M, below.shaped_bps / (0.9 * (SMALL.rate_bps or 0))
    again, less = (below.shaped_sent_again, below.unshaped_sent_again), Goal("ratio", "<=", 0.2)
    return [
        Row("C7", f"{case}: shaped to 0.9", "Mb/s", rate, "unshaped", below.unshaped_bps / M, runs, _GAIN),
        Row("C8", f"{case}: of the shaped rate", "", reached, "DYNES", 0.918, runs, Goal("ratio", "1 +-", 0.4)),
        Row("C9", f"{case}: segments sent again", "", again[0], "unshaped", again[1], runs, less),
        Row(
            "C10",
            f"{case}: shaped to 1.0",
            "Mb/s",
            whole.shaped_bps / M,
            "unshaped",
            whole.unshaped_bps / M,
            runs,
            _GAIN,
        ),
    ]


def _shaped(directory: Path, wanted: Wanted, share: float) -> SmallBuffer:
    with ExitStack() as stack:
        return small_buffer(
            directory, stack, line=SMALL, control="cubic", rounds=wanted.runs, seconds=6, shaped_share=share
        )


CAPPED_BPS, ROUND_TRIP_MS = 16 * M, 36.3
_GAIN = Goal("ratio", ">=", 1.5)
"""Kernels of today lose far less than those of 2013 before a small buffer: 1.4 to 5 times, not 36."""
TUNNELS = (*NETWORK, "vxlan")
GROUPS = {
    "beside-flows": Group(("C1",), beside_flows, TUNNELS),
    "set-up": Group(("C2",), set_up, TUNNELS),
    "cap": Group(("C5",), beyond_the_profile, TUNNELS),
    "round-trip": Group(("C6",), round_trip, WIRES),
    "shaping": Group(("C7", "C8", "C9", "C10"), shaping, (*TUNNELS, "tun")),
}
