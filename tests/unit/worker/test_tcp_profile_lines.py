"""TCP profiles between the agent and its node: the list at start and after changes, and the steps of trials."""

import copy
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from downburst.domain.events import FaultSeen, TcpProfilesChanged
from downburst.domain.tcp.profiles import ProfileMode, ProfileState, TcpKnobs, TcpProfile, TrialStep
from downburst.foundation.bounds import OutOfBounds
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import BadInput
from downburst.ledger import Ledger
from downburst.ledger.repositories.audit import Changes
from downburst_worker.messages.tcp_lines import applied_profile, tcp_profiles_job, tcp_trial
from factories import SOME_TIME
from unit.worker.test_agent import Stage

BBR = {
    "congestion": "bbr",
    "send_buffer_bytes": 8_388_608,
    "receive_buffer_bytes": None,
    "pacing_bps": 50_000_000,
    "connections": 4,
}
LEARNS = TcpProfile("overseas", "192.0.2.0/24", ProfileMode.LEARN)
KEPT: dict[str, Any] = {
    "event": "tcp-trial",
    "name": "overseas",
    "step": "kept",
    "knobs": BBR,
    "before": {},
    "canaries": 1,
    "others": 3,
    "canary_bps": 24_000_000,
    "others_bps": 15_000_000,
    "windows": 2,
    "reason": "the canaries carried 1.6 times the rate of the others",
}


BELOW_AND_ABOVE: tuple[Any, ...] = (-1, 2**31, 1.0, True, None)
IMPOSSIBLE: dict[str, tuple[Any, ...]] = {
    "name": ("", "Over seas", "x" * 64, None, 5),
    "step": ("", "Kept", None, ["kept"]),
    "knobs": (
        *(None, [], "bbr", {"connections": 17}, {"connections": 0}),
        *({"send_buffer_bytes": value} for value in (4_095, 2**30 + 1, 1.5, True, "8MiB")),
        *({"pacing_bps": value} for value in (7_999, 10**12 + 1)),
        *({"congestion": value} for value in ("", "x" * 16, "BBR", 7)),
    ),
    "before": (None, [], {"receive_buffer_bytes": 1}),
    **dict.fromkeys(("canaries", "others", "windows"), BELOW_AND_ABOVE),
    **dict.fromkeys(("canary_bps", "others_bps"), (-1, 2**63, 1.5)),
    "reason": (None, 5),
}


@pytest.fixture
async def stage(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> AsyncIterator[Stage]:
    made = Stage(tmp_path / "hub", ledger, clock)
    await made.agent.start()
    yield made
    await made.agent.stop()


async def put(stage: Stage, profile: TcpProfile) -> None:
    await stage.ledger.write(lambda tx: tx.fleet.tcp_profiles.put(profile))


async def told(stage: Stage) -> list[list[dict[str, Any]]]:
    return [job["profiles"] for job in await stage.jobs("tcp-profiles")]


def test_the_list_has_the_form_of_the_lines() -> None:
    profile = TcpProfile("overseas", "192.0.2.0/24", ProfileMode.TRIAL, TcpKnobs("bbr"), TcpKnobs(connections=2))
    none = dict.fromkeys(BBR)
    assert tcp_profiles_job([profile, LEARNS])["profiles"] == [
        {
            "name": "overseas",
            "prefix": "192.0.2.0/24",
            "mode": "trial",
            "knobs": none | {"congestion": "bbr"},
            "learnt": none | {"connections": 2},
        },
        {"name": "overseas", "prefix": "192.0.2.0/24", "mode": "learn", "knobs": none, "learnt": None},
    ]


@pytest.mark.parametrize("step", ["began", "kept", "not-better", "taken-back"])
def test_every_step_is_read(step: str) -> None:
    trial = tcp_trial(KEPT | {"step": step, "canary_bps": None, "others_bps": None}, at=SOME_TIME, sender="east")
    assert (trial.profile, trial.step, trial.sender, trial.at) == ("overseas", TrialStep(step), "east", SOME_TIME)
    assert (trial.knobs, trial.before) == (TcpKnobs("bbr", 8_388_608, None, 50_000_000, 4), TcpKnobs())
    assert (trial.canaries, trial.others, trial.canary_bps, trial.others_bps, trial.windows) == (1, 3, None, None, 2)


@pytest.mark.parametrize("state", ["static", "base", "canary", "learnt"])
def test_every_state_of_a_session_is_read(state: str) -> None:
    applied = applied_profile({"name": "overseas", "state": state, "knobs": {"congestion": "bbr"}})
    assert (applied.name, applied.state, applied.knobs) == ("overseas", ProfileState(state), TcpKnobs("bbr"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name, values in IMPOSSIBLE.items() for value in values),
    ],
)
def test_a_step_out_of_bounds_is_refused(name: str, value: Any) -> None:
    with pytest.raises(OutOfBounds):
        tcp_trial(copy.deepcopy(KEPT) | {name: value}, at=SOME_TIME)


def test_a_long_reason_is_cut() -> None:
    assert len(tcp_trial(KEPT | {"reason": "x\n" * 9_999}, at=SOME_TIME).reason) == 500


async def test_the_list_is_sent_when_it_changes_and_at_each_start(stage: Stage) -> None:
    assert await told(stage) == [], "a node that has just started has no profiles"
    await put(stage, TcpProfile("overseas", "192.0.2.0/24", knobs=TcpKnobs("bbr")))
    await stage.agent.apply_tcp_profiles()
    stage.bus.publish(TcpProfilesChanged())
    await stage.agent.apply_tcp_profiles()
    assert [[one["name"] for one in job] for job in await told(stage)] == [["overseas"]], "not twice"
    await stage.agent._make_ready()
    jobs = [job["do"] for job in (await stage.agent._node.request("told"))["jobs"]]
    assert jobs[-4:-1] == ["start", "tcp-profiles", "feeds"], "before the sites, which connect then"
    await stage.ledger.write(lambda tx: tx.fleet.tcp_profiles.remove("overseas"))
    stage.bus.publish(TcpProfilesChanged())
    await stage.last_job("tcp-profiles", lambda job: job["profiles"] == [])


async def test_a_profile_that_the_node_refuses_at_its_start_is_a_fault(stage: Stage) -> None:
    await put(stage, TcpProfile("overseas", "192.0.2.0/24", knobs=TcpKnobs("vegas")))
    with pytest.raises(BadInput, match="the kernel has no vegas"):
        await stage.agent.apply_tcp_profiles()
    await stage.agent._make_ready()
    fault = await stage.event(FaultSeen)
    assert fault.next_step == "downburst tcp-profiles list"
    assert stage.agent.running


async def test_kept_values_are_stored_audited_and_sent_as_learnt(stage: Stage) -> None:
    await put(stage, LEARNS)
    await stage.agent.apply_tcp_profiles()
    await stage.says(**KEPT | {"step": "began", "canary_bps": None, "others_bps": None})
    await stage.event(TcpProfilesChanged)
    assert len(await told(stage)) == 1, "a trial changes nothing in the list"
    await stage.says(**KEPT)
    job = await stage.last_job("tcp-profiles", lambda job: bool(job["profiles"][0]["learnt"]))
    assert job["profiles"][0]["learnt"] == BBR
    kept = await stage.ledger.read(lambda tx: tx.fleet.tcp_profiles.one("overseas"))
    assert kept.learnt == TcpKnobs("bbr", 8_388_608, None, 50_000_000, 4)
    assert kept.trial is not None
    assert (kept.trial.step, kept.trial.canary_bps, kept.trial.sender) == (TrialStep.KEPT, 24_000_000, "")
    await stage.says(**KEPT | {"step": "taken-back", "reason": "slower", "canary_bps": 9_000_000})
    await stage.last_job("tcp-profiles", lambda job: job["profiles"][0]["learnt"] is None)
    audited = await stage.ledger.read(lambda tx: tx.access.audit.page(Changes(kind="TCP profile", who="hub")))
    assert [one.action for one in audited][:3] == ["taken back", "trial kept", "trial began"]


async def test_an_impossible_step_changes_nothing(stage: Stage) -> None:
    await put(stage, LEARNS)
    await stage.agent.apply_tcp_profiles()
    await stage.says(**KEPT | {"knobs": {"connections": 10**9}})
    await stage.says(**KEPT)
    await stage.last_job("tcp-profiles", lambda job: bool(job["profiles"][0]["learnt"]))
    audited = await stage.ledger.read(lambda tx: tx.access.audit.page(Changes(kind="TCP profile", who="hub")))
    assert [one.action for one in audited][:1] == ["trial kept"]
    assert len(audited) == 2
