"""A healthy hub beside busy processors raises no warning and no critical alarm, in any place that shows alarms."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kit.page_hub import Hub

pytestmark = [pytest.mark.system]


@pytest.mark.long(67)
@pytest.mark.parametrize("seconds", [45, pytest.param(600, marks=pytest.mark.nightly)])
def test_a_healthy_hub_raises_no_warning(seconds: int, tmp_path: Path) -> None:
    """`DOWNBURST_HEALTHY_SECONDS` gives another duration.

    Ten feeds with the sizes and rates of a busy host go to two sites while two loops take the processors.
    """
    seconds = int(os.environ.get("DOWNBURST_HEALTHY_SECONDS", seconds))
    with Hub(tmp_path / "hub") as hub, _busy_loops(2):
        hub.play(rate=1.0, size=1.0)
        feeds = _feeds(hub, 10)
        for site in ("ucar.edu", "unl.edu"):
            hub.post("sites", site=site, allow=feeds)
            for feed in feeds:
                hub.post(f"sites/{site}/subscriptions", feed=feed)
            hub.receive(site, tmp_path / site)
        _wait_for_sites(hub)
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            _judge(hub)
            time.sleep(2)
        _judge_commands(hub)
        came = {one["feed"]: one["products"] for one in hub.client.get("/v1/overview", timeout=60).json()["feeds"]}
        assert all(came.values()), f"feeds without products say nothing: {came}"


@contextmanager
def _busy_loops(count: int) -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _feeds(hub: Hub, count: int) -> list[str]:
    def found() -> list[str]:
        return [feed["feed"] for feed in hub.client.get("/v1/feeds", timeout=60).json()]

    ends = time.monotonic() + 120
    while len(found()) < count and time.monotonic() < ends:
        time.sleep(0.5)
    assert len(found()) == count
    return found()


def _wait_for_sites(hub: Hub) -> None:
    """Waits until new sites have stored products: their start is not judged."""
    ends = time.monotonic() + 120
    while time.monotonic() < ends:
        sites = hub.client.get("/v1/overview", timeout=60).json()["sites"]
        if len(sites) == 2 and all(site["connected"] and site["stored"] for site in sites):
            return
        time.sleep(0.5)
    raise AssertionError("the sites stored nothing")


def _judge(hub: Hub) -> None:
    """Judges all alarms, however short, also ended ones; the page shows the overview."""
    alarms = hub.client.get("/v1/alarms?ended=true&limit=1000", timeout=60).json()["items"]
    faults = hub.client.get("/v1/overview", timeout=60).json()["faults"]
    assert _serious(alarms) == []
    assert _serious(faults) == []
    metrics = hub.client.get("/metrics", timeout=60).text
    shown = [line for line in metrics.splitlines() if line.startswith("downburst_alarms{")]
    assert [line for line in shown if 'severity="information"' not in line] == []


def _serious(found: list[dict[str, Any]]) -> list[str]:
    return [f"{one['severity']}: {one['sentence']}" for one in found if one["severity"] != "information"]


def _judge_commands(hub: Hub) -> None:
    for command in (("status",), ("alarms", "list")):
        said = hub.command(*command)
        assert said.returncode == 0, said.stderr
        assert "critical" not in said.stdout, said.stdout
        assert "warning" not in said.stdout, said.stdout
