"""Statements about a product at a hub further down: live, by a resend, and in a copy of the hub's directory."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import DOWNBURST, RunningHub, Starter, until
from integration.test_wis2_hub import FEED, Scene, scene

__all__ = ["scene"]

pytestmark = pytest.mark.all


def lower_hub(scene: Scene, directory: Path, *, start: str | None) -> RunningHub:
    """A hub that is a site of the scene's; `start`: with the products of the time before."""
    wanted = {"feed": FEED} if start is None else {"feed": FEED, "start": start}
    scene.hub.ask("POST", "/v1/sites", 201, json={"site": "lower"})
    scene.hub.ask("POST", "/v1/sites/lower/subscriptions", 201, json=wanted)
    token = scene.hub.ask("POST", "/v1/sites/lower/tokens", 201)["token"]
    hub = scene.starter.hub(data_dir=directory, command=("env", "DOWNBURST_NAME=lower", DOWNBURST))
    hub.ask("POST", "/v1/feeds", 201, json={"feed": FEED})
    upstream = {"upstream": "upper", "address": scene.hub.sites, "token": token}
    hub.ask("POST", "/v1/upstreams", 201, json=upstream)
    return hub


def traced(hub: RunningHub, message: dict[str, Any]) -> dict[str, Any] | None:
    answer = hub.client.get("/v1/products/trace", params={"product": message["properties"]["data_id"]})
    return dict(answer.json()["products"][0]["bridged"]) if answer.is_success else None


@pytest.mark.parametrize("start", [None, "1h"], ids=["live", "by a resend"])
def test_the_next_hub_has_the_notification_verbatim(scene: Scene, tmp_path: Path, start: str | None) -> None:
    scene.bridge()
    message = scene.serve(1, b"SMVX52")
    if start is not None:
        scene.announce(message)
        until("the product here", lambda: scene.counts() == (0, 1, 0))
    lower = lower_hub(scene, tmp_path / "lower", start=start)
    if start is None:
        until("the lower hub", lambda: "lower" in str(scene.hub.ask("GET", "/v1/overview")["sites"]))
        scene.announce(message)
    here = until("the product there", lambda: traced(lower, message))
    there = traced(scene.hub, message)
    assert there is not None
    assert here["properties"] == there["properties"]
    assert json.loads(here["properties"])["notification"] == message
    assert here["statement"]["heard"] is None, "another hub heard it"
    assert there["statement"]["heard"]["bridge"] == "dwd"
    assert {**here["statement"], "heard": None} == {**there["statement"], "heard": None}


def test_a_copy_of_a_hub_has_the_statements_too(scene: Scene, starter: Starter, tmp_path: Path) -> None:
    scene.bridge()
    message = scene.serve(1, b"SMVX52")
    scene.announce(message)
    until("the product", lambda: scene.counts() == (0, 1, 0))
    before = traced(scene.hub, message)
    assert scene.hub.stop() == 0
    shutil.copytree(scene.hub.directory, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock", "*.lock"))
    again = starter.hub(data_dir=tmp_path / "copy")
    after = traced(again, message)
    assert before is not None
    assert after is not None
    assert (after["properties"], after["statement"]) == (before["properties"], before["statement"])
