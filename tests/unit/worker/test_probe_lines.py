"""The lines about probes: jobs from requests, reports into events, and bounds of both."""

import copy
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from downburst.domain.probes import Probe, ProbeKind, ProbeState, ProbeTransport
from downburst.domain.probes.results import DelaySpread, Excess, ProbeResult, ProbeSecond, StepResult
from downburst.domain.probes.signs import ProbeOver, ProbeSecondReported
from downburst.domain.probes.trials import FlowResult, RoundTrip, TrialResult
from downburst.domain.sites import Site
from downburst.foundation.bounds import OutOfBounds
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import CircuitConflict
from downburst.ledger import Ledger
from downburst_worker.messages.probe_lines import probe_job, probe_over, probe_second_reported
from factories import SOME_TIME, probe_request, stacks_request
from unit.worker.test_agent import Stage

DELAYS = {"min": -20, "median": 10, "p99": 30, "max": 40}
SECOND: dict[str, Any] = {
    "event": "probe-second",
    "probe": "p3-1",
    "second": 7,
    "sent": 100,
    "received": 97,
    "lost": 3,
    "receiver_dropped": 2,
    "reordered": 2,
    "duplicated": 1,
    "bytes": 120_000,
    "delay_us": DELAYS,
    "jitter_us": 1.5,
    "delay_bound_us": 900,
}
STEP: dict[str, Any] = {
    "rate_bps": 100_000_000,
    "sent_bps": 99e6,
    "received_bps": 98e6,
    "sent": 100,
    "received": 97,
    "lost": 3,
    "receiver_dropped": 2,
    "reordered": 2,
    "duplicated": 1,
    "elapsed_us": 1_000_000,
    "delay_us": None,
    "jitter_us": None,
}
ENDED: dict[str, Any] = {
    "event": "probe-ended",
    "probe": "p3-1",
    "outcome": "done",
    "reason": None,
    "sender_lag_us": 120,
    "steps": [STEP],
    "knee_bps": 98e6,
    "knee_reason": None,
    "losses": 1,
    "delay_bound_us": 700,
    "excess": [{"at_us": 5, "lost": 1, "excess_us": 40_000, "recovery_us": None}],
}
EXCESS: dict[str, Any] = {
    "at_us": 5,
    "lost": 1,
    "excess_us": 40_000,
    "recovery_us": 150_000,
    "peak_bps": 97e6,
    "backlog_bytes": 480_000,
    "predicted_us": 170_000,
}
FLOW: dict[str, Any] = {
    "congestion": "cubic",
    "reverse": False,
    "goodput_bps": 40e6,
    "retransmits": 7,
    "round_trip_us": {"min": 40_000, "mean": 52_000},
}
TRIAL: dict[str, Any] = {
    "duration_ms": 10_000,
    "reason": None,
    "fairness": 0.9,
    "limited": False,
    "flows": [
        FLOW,
        FLOW | {"congestion": "bbr"},
        FLOW | {"reverse": True, "round_trip_us": {"min": None, "mean": None}},
    ],
}
NOT_RUN: dict[str, Any] = {
    "duration_ms": 10_000,
    "reason": "bbr is not available at unl.edu",
    "fairness": None,
    "limited": False,
    "flows": [],
}
PROBE = Probe(3, probe_request(kind=ProbeKind.KNEE), ProbeState.RUNNING, SOME_TIME, attempts=1)


def test_a_probe_is_told_as_the_interface_says() -> None:
    job = probe_job(PROBE)
    assert job["steps"][0] == {"rate_bps": 1_000_000, "duration_ms": 1_000}
    del job["steps"]
    assert job == {
        "probe": "p3-1",
        "site": "unl.edu",
        "kind": "knee",
        "direction": "out",
        "packet_bytes": 1_200,
        "seconds": False,
        "relay": None,
        "transport": "udp",
        "congestion": None,
    }
    cbr = probe_job(replace(PROBE, request=probe_request()))
    assert (cbr["seconds"], cbr["transport"], cbr["congestion"]) == (True, "udp", None)
    over_tcp = replace(probe_request(), transport=ProbeTransport.TCP, congestion="bbr")
    job = probe_job(replace(PROBE, request=over_tcp))
    assert (job["transport"], job["congestion"]) == ("tcp", "bbr")


def test_a_comparison_of_stacks_has_trials_and_a_limit_instead_of_steps() -> None:
    job = probe_job(replace(PROBE, request=stacks_request()))
    assert job["trials"] == [
        {"flows": flows, "reverse": reverse, "duration_ms": 2_000}
        for reverse in ([], ["cubic"])
        for flows in (["cubic"], ["bbr"], ["cubic", "cubic"], ["cubic", "bbr"], ["bbr", "bbr"])
    ]
    assert (job["kind"], job["rate_bps"], job["seconds"]) == ("stacks", 10_000_000, False)
    assert not {"steps", "transport", "congestion"} & set(job)


def test_reports_of_the_node_are_read_whole() -> None:
    spread = DelaySpread(-20, 10, 30, 40)
    assert probe_second_reported(SECOND) == ProbeSecondReported(
        "p3-1", ProbeSecond(7, 100, 97, 3, 2, 1, 120_000, spread, 1.5, 900, 2)
    )
    without = SECOND | {"delay_us": None, "jitter_us": None, "delay_bound_us": None}
    assert probe_second_reported(without).second.delay_us is None
    step = StepResult(100_000_000, 99e6, 98e6, 100, 97, 3, 2, 1, 1_000_000, receiver_dropped=2)
    result = ProbeResult((step,), 120, 98e6, None, 1, (Excess(5, 1, 40_000, None),), delay_bound_us=700)
    assert probe_over(ENDED) == ProbeOver("p3-1", "done", None, result)


def test_the_end_of_a_probe_over_tcp_is_read_whole() -> None:
    line = ENDED | {"excess": [EXCESS], "congestion": "cubic", "retransmits": 3, "trials": None}
    result = probe_over(line).result
    assert result.excess == (Excess(5, 1, 40_000, 150_000, 97e6, 480_000, 170_000),)
    assert (result.congestion, result.retransmits, result.trials) == ("cubic", 3, None)


def test_the_trials_of_stacks_are_read_whole() -> None:
    result = probe_over(ENDED | {"steps": [], "trials": [TRIAL, NOT_RUN]}).result
    cubic = FlowResult("cubic", False, 40e6, 7, RoundTrip(40_000, 52_000))
    flows = (cubic, replace(cubic, congestion="bbr"), replace(cubic, reverse=True, round_trip_us=RoundTrip()))
    assert result.trials == (
        TrialResult(10_000, None, 0.9, False, flows),
        TrialResult(10_000, "bbr is not available at unl.edu", None, False, ()),
    )
    assert result.trials[0].shares == [0.5, 0.5, 1.0]
    (rounded,) = probe_over(ENDED | {"trials": [TRIAL | {"fairness": 1.0000000000000002}]}).result.trials or ()
    assert rounded.fairness == 1.0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[("probe", None), ("probe", ""), ("probe", "x" * 65), ("outcome", "well"), ("outcome", None)],
        *[
            ("steps", None),
            ("steps", [STEP] * 85),
            ("steps", [STEP | {"lost": -1}]),
            ("steps", [STEP | {"sent_bps": -1}]),
        ],
        *[("knee_bps", -1), ("knee_bps", float("nan")), ("knee_bps", 1e300), ("knee_bps", "1")],
        *[("trials", 3), ("trials", [NOT_RUN] * 33), ("trials", [TRIAL | {"flows": [FLOW] * 7}])],
        *[("trials", [TRIAL | {"fairness": 1.1}]), ("trials", [TRIAL | {"limited": 1}])],
        *[("trials", [TRIAL | {"flows": [FLOW | {"congestion": "../x"}]}])],
        *[("trials", [TRIAL | {"flows": [FLOW | {"round_trip_us": 5}]}])],
        *[("congestion", "x" * 16), ("congestion", 5), ("retransmits", -1)],
        *[("excess", [EXCESS | {"predicted_us": -1}]), ("excess", [EXCESS | {"peak_bps": -1.0}])],
        *[("losses", -1), ("losses", 2**70), ("excess", 3), ("excess", [{}] * 101)],
    ],
)
def test_an_impossible_end_is_set_aside(field: str, value: object) -> None:
    with pytest.raises(OutOfBounds):
        probe_over(copy.deepcopy(ENDED) | {field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [("second", -1), ("second", 10**9), ("bytes", -1), ("delay_us", 3), ("delay_us", DELAYS | {"p99": 10**13})],
)
def test_an_impossible_second_is_set_aside(field: str, value: object) -> None:
    with pytest.raises(OutOfBounds):
        probe_second_reported(SECOND | {field: value})


@pytest.fixture
async def stage(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> AsyncIterator[Stage]:
    made = Stage(tmp_path, ledger, clock)
    with ledger.transaction() as tx:
        tx.sites.add(Site("unl.edu"))
    await made.agent.start()
    yield made
    await made.agent.stop()


async def test_the_agent_hands_probes_to_the_node_and_its_reports_to_the_bus(stage: Stage) -> None:
    await stage.agent.probes.start_probe(PROBE)
    await stage.agent.probes.stop_probe(PROBE.name, "products became late")
    jobs = [job for job in (await stage.agent._node.request("told"))["jobs"] if job["do"].startswith("probe")]
    assert [(job["do"], job["probe"]) for job in jobs] == [("probe", "p3-1"), ("probe-stop", "p3-1")]
    await stage.agent._hear(SECOND)
    await stage.agent._hear(ENDED)
    assert (await stage.event(ProbeSecondReported)).second.second == 7
    assert (await stage.event(ProbeOver)).outcome == "done"


async def test_a_site_that_is_not_connected_is_named(stage: Stage) -> None:
    elsewhere = replace(PROBE, request=probe_request("isu.edu"))
    with pytest.raises(CircuitConflict, match=r"isu\.edu is not connected"):
        await stage.agent.probes.start_probe(elsewhere)
