"""A whole hub and its probes: the plan follows the knee, and no product pays for it."""

from pathlib import Path

import pytest

from kit.capabilities import needs_punctual_sender
from kit.patience import wait_for
from kit.probe_trials import FAST_LANE, OBJECTIVE_MS, STEADY, Beside, beside_probes, end_for_late_products
from kit.probed_hub import FEED, SITE, ProbedHub, Shown, ended_s, probed_hub
from kit.wire import Lane

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]

M = 1_000_000
WIRE_BPS = 40 * M
LANE = Lane(rate_bps=WIRE_BPS, delay_ms=10, buffer_bytes=60_000)
ROUND_S = 10
SETTINGS = f"[scheduler]\nstep_s = {ROUND_S}\n"


def test_a_plan_follows_the_knee_of_a_wire_within_one_round_and_names_the_probe(tmp_path: Path) -> None:
    with probed_hub(tmp_path, LANE, settings=SETTINGS, sites=(SITE, "isu.edu")) as scene:
        assert scene.command("plans", "pin", FEED, "multicast").returncode == 0
        before = wait_for("a group", lambda: group(scene), 60)
        assert before["rate_bps"] > 2 * WIRE_BPS
        probe = scene.probed("knee", SITE, "--highest", "80M", "--steps", "6", "--seconds", "0.7")
        print(probe["result"]["knee_reason"], probe["result"]["sender_lag_us"])
        needs_punctual_sender(probe["result"]["knee_reason"])
        after = wait_for("a slower group", lambda: slower(scene, before["rate_bps"]), 30)
        plan = scene.plan()
        shown = scene.command("plans", "show", FEED).stdout
        report = scene.wire.stop()
    knee_bps, steps = probe["result"]["knee_bps"], probe["result"]["steps"]
    below = [step["loss"] for step in steps if step["rate_bps"] < 0.95 * WIRE_BPS]
    took_s = made_s(plan) - ended_s(probe)
    print(
        f"knee {knee_bps / M:.2f} of {WIRE_BPS / M} Mb/s, loss below {max(below):.4%}; planned after {took_s:.2f} s"
    )
    print(plan["reason"])
    report.needs_small_lag()
    assert abs(knee_bps - WIRE_BPS) <= 0.05 * WIRE_BPS
    assert max(below) < 0.001
    assert after["rate_bps"] == pytest.approx(knee_bps, rel=0.001)
    assert f"probe {probe['id']} of {SITE}" in plan["reason"]
    assert f"probe {probe['id']} of {SITE}" in " ".join(shown.split())
    assert took_s <= ROUND_S


def test_a_probe_ends_within_a_second_of_late_products(tmp_path: Path) -> None:
    with probed_hub(tmp_path, LANE, objective_ms=OBJECTIVE_MS) as scene:
        # Alone, the product needs 4 s of the wire.
        found = end_for_late_products(scene, rate_bps=30 * M, product_bytes=20 * M)
        report = scene.wire.stop()
    print(f"it ended {found.since_report_s:.2f} s after the late report, {found.since_late_s:.2f} s after")
    print(found.probe["reason"])
    report.needs_small_lag(max_lag_us=20_000)
    assert found.probe["reason"].startswith(f"products became late: products of {FEED} for {SITE}")
    assert found.probe["result"]["steps"][0]["received"] > 0
    assert found.since_report_s <= 1.0


def test_a_probe_above_the_free_rate_is_refused_with_the_holder(tmp_path: Path) -> None:
    with probed_hub(tmp_path, LANE) as scene:
        scene.add_ports(WIRE_BPS)
        held = scene.hold(30 * M)
        refused = scene.probed("cbr", SITE, "--rate", "20M", "--seconds", "1", "--patience", "0")
        fits = scene.probed("cbr", SITE, "--rate", "8M", "--seconds", "0.5", "--patience", "0")
    print(refused["reason"])
    assert refused["state"] == "refused"
    assert f"because of circuit {held}" in refused["reason"]
    assert f"circuit {held} holds 30 Mb/s" in refused["reason"]
    assert fits["state"] == "done", fits["reason"]
    assert fits["circumstances"]["reserved"] == ["hub-port", "far-port"]


def test_products_stay_as_fast_beside_probes_within_the_free_rate(tmp_path: Path) -> None:
    """A coarse look at the median: the 99th percentile of so few products is one that the machine itself delayed."""
    assert beside(tmp_path, probes=3, window_s=2).median_ratio <= 1.25


@pytest.mark.nightly
def test_the_p99_of_products_is_the_same_beside_ten_probes(tmp_path: Path) -> None:
    assert beside(tmp_path, probes=10, window_s=5).ratio <= 1.1


def beside(tmp_path: Path, *, probes: int, window_s: float) -> Beside:
    with probed_hub(tmp_path, FAST_LANE, congestion=STEADY) as scene:
        scene.add_ports(100 * M)
        found = beside_probes(scene, probes=probes, window_s=window_s)
        report = scene.wire.stop()
    print(f"{found}: p99 {found.ratio:.2f} times as long, median {found.median_ratio:.2f} times")
    report.needs_small_lag()
    return found


def group(scene: ProbedHub) -> Shown | None:
    """The multicast leg of the plan, if there is one."""
    return next((dict(leg) for leg in scene.plan()["legs"] if leg["transport"] == "multicast"), None)


def slower(scene: ProbedHub, rate_bps: int) -> Shown | None:
    found = group(scene)
    return found if found is not None and found["rate_bps"] < rate_bps else None


def made_s(plan: Shown) -> float:
    return ended_s({"ended_at": plan["made_at"]})
