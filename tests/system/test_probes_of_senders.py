"""A probe of a site that a sender serves: it runs at that sender, and a soak follows the site to another one."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kit.kafka import Kafka
from kit.patience import wait_for
from kit.postgres import Postgres
from kit.sender_scene import Scene

pytestmark = [pytest.mark.system, pytest.mark.nightly]

M = 1_000_000


def test_a_sender_probes_its_site_and_a_soak_continues_at_another_when_it_dies(
    tmp_path: Path, server: Postgres, broker: Kafka
) -> None:
    scene = Scene(tmp_path, server, broker)
    done = shown_when(scene, ask(scene, "cbr", 2), "done", "failed", "refused", "stopped")
    print(done["result"], done["circumstances"])
    assert (done["state"], done["reason"]) == ("done", "")
    sender = by_name(scene, done)
    (step,) = done["result"]["steps"]
    assert step["received"] + step["lost"] + step["receiver_dropped"] == step["sent"] > 0
    assert stored_seconds(scene, done) > 0
    soak = ask(scene, "soak", 600)
    wait_for("seconds of the soak", partial(stored_seconds, scene, soak), 60)
    first = by_name(scene, shown(scene, soak))
    assert first is sender, "the first one that serves the site"
    first.kill_all()
    gone = wait_for("a gap", lambda: shown(scene, soak)["gaps"], 60)
    assert "ended" in gone[0]["reason"] or "moved" in gone[0]["reason"], gone
    again = wait_for("a soak that continues", partial(continued, scene, soak), 120)
    assert again["attempts"] >= 2
    scene.hub.ask("DELETE", f"/v1/probes/{soak}")
    stopped = shown_when(scene, soak, "stopped")
    assert stopped["result"]["steps"][0]["received"] > 0
    first.start()
    scene.finish()
    scene.end()


def ask(scene: Scene, kind: str, seconds: int) -> int:
    wanted = {"site": "a.edu", "kind": kind, "rate_bps": 2 * M, "seconds": seconds, "patience_s": 60}
    return int(scene.hub.ask("POST", "/v1/probes", json=wanted)["id"])


def shown(scene: Scene, probe: int) -> dict[str, Any]:
    return dict(scene.hub.ask("GET", f"/v1/probes/{probe}"))


def shown_when(scene: Scene, probe: int, *states: str) -> dict[str, Any]:
    def found() -> dict[str, Any] | None:
        now = shown(scene, probe)
        return now if now["state"] in states else None

    return wait_for(f"a probe that is {states}", found, 90)


def continued(scene: Scene, probe: int) -> dict[str, Any] | None:
    now = shown(scene, probe)
    return now if now["state"] == "running" and now["attempts"] > 1 and now["gaps"][-1]["until"] else None


def stored_seconds(scene: Scene, probe: int | dict[str, Any]) -> int:
    number = probe if isinstance(probe, int) else probe["id"]
    return len(scene.hub.ask("GET", f"/v1/probes/{number}/seconds"))


def by_name(scene: Scene, probe: dict[str, Any]) -> Any:
    return next(sender for sender in scene.senders if sender.name == probe["circumstances"]["sender"])
