"""Probes between a hub and its relay, and between that and a site whose session it carries, on hosts of a lab."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kit.capabilities import needs
from kit.namespaces import Lab
from kit.node import HubNode, Line, NodeError, SiteNode
from kit.relay import RelayNode

pytestmark = [pytest.mark.system, pytest.mark.root]

FEED, RELAY, SITE = "NGRID", "omaha", "far"
STEADY = [{"rate_bps": 4_000_000, "duration_ms": 1_500}]
LONG = [{"rate_bps": 4_000_000, "duration_ms": 600_000}]
DIRECTIONS = ("out", "in")


@dataclass
class Scene:
    """A hub, its relay, and a site that reaches the hub by the relay alone."""

    hub: HubNode
    relay: RelayNode
    site: SiteNode

    def ended(self, probe: str, **fields: Any) -> Line:
        """Runs a probe to its end."""
        self.hub.do("probe", probe=probe, kind="cbr", steps=STEADY, seconds=True, **fields)
        return self.hub.wait_event(event="probe-ended", probe=probe)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    needs("root", "netns", "veth", "bridge")
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(["hub", "relay", "far"]))
        hub = HubNode(tmp_path / "hub", listen=f"{lab.address('hub')}:7370", prefix=lab.command("hub", []))
        stack.callback(hub.stop)
        hub.start()
        hub.feed(FEED)
        token = tmp_path / "relay" / "token"
        hub.site(RELAY, token_file=token)
        options = ("--hub", hub.address, "--token-file", str(token), "--dir", str(tmp_path / "relay"))
        listen, prefix = f"{lab.address('relay')}:7379", lab.command("relay", [])
        relay = RelayNode(
            tmp_path / "relay.log", (hub.address,), listen=listen, prefix=prefix, arguments=options
        ).start()
        stack.callback(relay.stop)
        via = ("--via", relay.address, "--via-only")
        site = SiteNode(tmp_path / "far", hub.address, prefix=lab.command("far", []), arguments=via)
        hub.site(SITE, {"feed": FEED, "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
        stack.callback(site.stop)
        site.start()
        hub.wait_connected(RELAY, SITE)
        yield Scene(hub, relay, site)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_relay_answers_the_probes_of_its_hub(scene: Scene, direction: str) -> None:
    checked(scene.ended(f"hub-{direction}", site=RELAY, direction=direction))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_relay_probes_the_path_to_a_site_that_it_carries(scene: Scene, direction: str) -> None:
    scene.hub.wait_event(event="traffic")
    probe = f"relay-{direction}"
    checked(scene.ended(probe, site=SITE, relay=RELAY, direction=direction))
    seconds = [event for event in scene.hub.events_named("probe-second") if event["probe"] == probe]
    assert [event["second"] for event in seconds] == list(range(len(seconds)))
    assert sum(event["received"] for event in seconds) > 0


def test_a_site_by_a_relay_takes_no_packets_of_the_hub_and_one_without_a_relay_none_of_a_relay(scene: Scene) -> None:
    with pytest.raises(NodeError, match="probe from the relay"):
        scene.ended("direct", site=SITE, direction="out")
    with pytest.raises(NodeError, match="no relay"):
        scene.ended("turned", site=RELAY, relay=SITE, direction="out")


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_probe_from_a_relay_is_stopped_and_keeps_its_figures(scene: Scene, direction: str) -> None:
    probe = f"stopped-{direction}"
    scene.hub.do(
        "probe", probe=probe, site=SITE, relay=RELAY, kind="soak", direction=direction, steps=LONG, seconds=True
    )
    with pytest.raises(NodeError, match=f"{probe} of {RELAY} runs"):
        scene.ended("beside", site=RELAY, direction="out")
    scene.hub.wait_event(event="probe-second", probe=probe)
    scene.hub.do("probe-stop", probe=probe, reason="products are late")
    ended = scene.hub.wait_event(event="probe-ended", probe=probe)
    assert (ended["outcome"], ended["reason"]) == ("stopped", "products are late")
    assert [step["received"] > 0 for step in ended["steps"]] == [True]


def test_the_death_of_a_relay_fails_its_probe_with_the_reason(scene: Scene) -> None:
    scene.hub.do(
        "probe", probe="last", site=SITE, relay=RELAY, kind="soak", direction="out", steps=LONG, seconds=True
    )
    scene.hub.wait_event(event="probe-second", probe="last")
    scene.relay.kill()
    ended = scene.hub.wait_event(event="probe-ended", probe="last")
    assert ended["outcome"] == "failed"
    assert "ended" in ended["reason"] or "no packet" in ended["reason"]


def checked(ended: Line) -> None:
    """Checks a probe of a path that carries far more: each packet arrived, or a host that was busy dropped it."""
    print(ended)
    assert (ended["outcome"], ended["reason"]) == ("done", None)
    (step,) = ended["steps"]
    assert step["sent"] > 0
    assert step["received"] + step["lost"] + step["receiver_dropped"] == step["sent"]
    assert step["lost"] == 0
