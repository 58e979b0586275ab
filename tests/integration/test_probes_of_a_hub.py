"""A whole hub with a node that speaks the lines: probes from the API to the node and back, and over a restart."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from downburst.foundation.clock import to_us
from downburst.host.local_token import authorization
from downburst.settings.alarms import AlarmSettings
from downburst.settings.hub import Settings
from downburst_app.wiring.hub import Hub

DELAYS = {"min": 1_000, "median": 1_100, "p99": 1_900, "max": 2_500}
SOAK = {"site": "unl.edu", "kind": "soak", "rate_bps": 10_000_000, "seconds": 600}


@dataclass
class Running:
    hub: Hub
    client: httpx.AsyncClient

    async def ask(self, method: str, path: str, **request: Any) -> Any:
        answer = await self.client.request(method, path, **request)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    async def says(self, **line: Any) -> None:
        """The node reports an event."""
        await self.hub._agent._node.request("emit", line=line)

    async def connect(self) -> None:
        await self.says(event="session", site="unl.edu", state="connected", peer="192.0.2.1:9", at_us=self.now_us())
        await until("the session", lambda: _true(self.hub._live.connected))

    async def jobs(self, kind: str) -> list[dict[str, Any]]:
        told = await self.hub._agent._node.request("told")
        return [job for job in told["jobs"] if job["do"] == kind]

    async def in_state(self, number: int, state: str) -> dict[str, Any]:
        async def found() -> Any:
            probe = await self.ask("GET", f"/v1/probes/{number}")
            return probe if probe["state"] == state else None

        return await until(f"probe {number} in {state}", found)  # type: ignore[no-any-return]

    def now_us(self) -> int:
        return to_us(self.hub._clock.now())


async def until(what: str, probe: Callable[[], Awaitable[Any]]) -> Any:
    """The first true thing that `probe` returns."""
    async with asyncio.timeout(60):
        while not (found := await probe()):
            await asyncio.sleep(0.05)
            print(f"waits for {what}")
        return found


async def _true(value: object) -> object:
    return value


@asynccontextmanager
async def running(directory: Path) -> AsyncIterator[Running]:
    node = directory / "node"
    node.write_text(f"#!/bin/sh\nexec {sys.executable} {Path(__file__).parents[1] / 'kit' / 'fake_node.py'}\n")
    node.chmod(0o755)
    settings = Settings(
        data_dir=directory / "hub",
        node=node,
        http="127.0.0.1:0",
        sites="127.0.0.1:0",
        reserve_bytes=0,
        alarms=AlarmSettings(heartbeat_s=0, disk_free_share=0),
    )
    async with Hub(settings) as hub:
        stop = asyncio.Event()
        task = asyncio.create_task(hub.run_until(stop))
        address = f"http://{hub.http_address}"
        async with httpx.AsyncClient(base_url=address, headers=authorization(address)) as client:
            yield Running(hub, client)
        stop.set()
        await asyncio.wait_for(task, 30)


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path) as started:
        await _configure(started)
        yield started


async def _configure(hub: Running) -> None:
    await hub.ask("POST", "/v1/feeds", json={"feed": "NGRID", "objective_ms": 2_000})
    await hub.ask("POST", "/v1/sites", json={"site": "unl.edu", "access_rate_bps": 1e9})
    await hub.connect()


def ended(name: str, outcome: str = "done", reason: str | None = None, **given: Any) -> dict[str, Any]:
    step = {
        "rate_bps": 10_000_000,
        "sent_bps": 1e7,
        "received_bps": 9.9e6,
        "sent": 1_000,
        "received": 990,
        "lost": 10,
        "receiver_dropped": 0,
        "reordered": 0,
        "duplicated": 0,
        "elapsed_us": 1_000_000,
        "delay_us": DELAYS,
        "jitter_us": 9.5,
    }
    return {
        "event": "probe-ended",
        "probe": name,
        "outcome": outcome,
        "reason": reason,
        "sender_lag_us": 50,
        "steps": [step],
        "knee_bps": None,
        "knee_reason": None,
        "losses": 1,
        "excess": None,
        **given,
    }


async def test_a_sweep_goes_from_the_api_to_the_node_and_its_knee_back(hub: Running) -> None:
    made = await hub.ask("POST", "/v1/probes", json={"site": "unl.edu", "kind": "knee", "steps": 4})
    await hub.in_state(made["id"], "running")
    (job,) = await hub.jobs("probe")
    assert [step["rate_bps"] for step in job["steps"]] == [step["rate_bps"] for step in made["steps"]]
    assert (job["site"], job["kind"], job["direction"], job["seconds"]) == ("unl.edu", "knee", "out", False)
    await hub.says(**ended(job["probe"], knee_bps=6e8))
    done = await hub.in_state(made["id"], "done")
    assert done["result"]["knee_bps"] == 6e8
    assert done["circumstances"]["reserved"] is None, "the site has no port"


async def test_one_rate_goes_by_tcp_with_its_congestion_control(hub: Running) -> None:
    wanted = SOAK | {"kind": "cbr", "seconds": 10, "transport": "tcp", "congestion": "cubic"}
    made = await hub.ask("POST", "/v1/probes", json=wanted)
    await hub.in_state(made["id"], "running")
    (job,) = await hub.jobs("probe")
    assert (job["transport"], job["congestion"], len(job["steps"])) == ("tcp", "cubic", 1)
    excess: dict[str, float] = {"at_us": 5, "lost": 0, "excess_us": 41_000, "recovery_us": 150_000}
    excess |= {"peak_bps": 97e6, "backlog_bytes": 480_000, "predicted_us": 170_000}
    await hub.says(**ended(job["probe"], excess=[excess], congestion="cubic", retransmits=1, trials=None))
    done = await hub.in_state(made["id"], "done")
    assert done["result"]["excess"] == [excess]
    assert (done["result"]["congestion"], done["result"]["retransmits"]) == ("cubic", 1)


async def test_the_trials_of_stacks_go_to_the_node_and_their_figures_come_back(hub: Running) -> None:
    wanted = {"site": "unl.edu", "kind": "stacks", "stacks": ["cubic", "bbr"], "rate_bps": 10**8, "seconds": 1}
    made = await hub.ask("POST", "/v1/probes", json=wanted)
    await hub.in_state(made["id"], "running")
    (job,) = await hub.jobs("probe")
    assert (job["trials"], job["rate_bps"]) == (made["trials"], 10**8)
    flow = {"congestion": "cubic", "reverse": False, "goodput_bps": 3e7, "retransmits": 2}
    flow |= {"round_trip_us": {"min": 900, "mean": 1_300}}
    trial = {"duration_ms": 1_000, "reason": None, "fairness": 1.0, "limited": False, "flows": [flow, flow]}
    await hub.says(**ended(job["probe"], steps=[], trials=[trial], congestion=None, retransmits=None))
    (found,) = (await hub.in_state(made["id"], "done"))["result"]["trials"]
    assert found == trial | {"shares": [0.5, 0.5]}


async def test_a_probe_ends_when_products_become_late(hub: Running) -> None:
    made = await hub.ask("POST", "/v1/probes", json=SOAK)
    await hub.in_state(made["id"], "running")
    (job,) = await hub.jobs("probe")
    feed = {"feed": "NGRID", "known": True, "products": 1, "bytes": 10, "oldest_us": hub.now_us() - 3_000_000}
    feed |= {"lost_products": 0, "lost_bytes": 0, "counting": False}
    began = asyncio.get_running_loop().time()
    await hub.says(event="backlog", sites=[{"site": "unl.edu", "feeds": [feed]}])

    async def stopped() -> Any:
        return await hub.jobs("probe-stop")

    (stop,) = await until("the stop", stopped)
    print(f"the node was told after {asyncio.get_running_loop().time() - began:.2f} s")
    assert stop["probe"] == job["probe"]
    assert stop["reason"].startswith("products became late: products of NGRID for unl.edu are 3.")
    await hub.says(**ended(job["probe"], "stopped", stop["reason"]))
    found = await hub.in_state(made["id"], "stopped")
    assert found["reason"] == stop["reason"]
    assert found["result"]["steps"][0]["lost"] == 10, "the results until then stay"


async def test_a_soak_continues_after_a_restart_of_the_hub_and_another_probe_has_failed(tmp_path: Path) -> None:
    async with running(tmp_path) as hub:
        await _configure(hub)
        soak = await hub.ask("POST", "/v1/probes", json=SOAK)
        await hub.in_state(soak["id"], "running")
        (job,) = await hub.jobs("probe")
        second = {"sent": 10, "received": 10, "lost": 0, "reordered": 0, "duplicated": 0, "bytes": 12_000}
        second["receiver_dropped"] = 0
        delays: dict[str, Any] = {"delay_us": DELAYS, "jitter_us": 1.5, "delay_bound_us": 90}
        await hub.says(event="probe-second", probe=job["probe"], second=0, **second, **delays)

        async def stored() -> Any:
            return await hub.ask("GET", f"/v1/probes/{soak['id']}/seconds")

        assert (await until("a second", stored))[0]["delay_us"] == DELAYS
    async with running(tmp_path) as hub:
        waits = await hub.in_state(soak["id"], "waiting")
        assert [(gap["until"], gap["reason"]) for gap in waits["gaps"]] == [(None, "the hub restarted")]
        await hub.connect()
        again = await hub.in_state(soak["id"], "running")
        assert again["attempts"] == 2
        assert again["gaps"][0]["until"] is not None
        (job,) = await hub.jobs("probe")
        assert job["probe"] == f"p{soak['id']}-2"
        assert job["steps"][0]["duration_ms"] < 600_000
        await hub.says(**ended(job["probe"]))
        await hub.in_state(soak["id"], "done")
        cbr = await hub.ask("POST", "/v1/probes", json=SOAK | {"kind": "cbr"})
        await hub.in_state(cbr["id"], "running")
    async with running(tmp_path) as hub:
        assert (await hub.in_state(cbr["id"], "failed"))["reason"] == "the hub restarted"
