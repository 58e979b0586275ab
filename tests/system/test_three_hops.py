"""Three hops over two domains: identifiers that differ per hop, products of A through nodes of B, and kills."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kit.capabilities import needs
from kit.circuit_hub import Shown
from kit.domains import M
from kit.three_hops import PORT_BPS, ThreeHops
from kit.whole_hub import WholeHub

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[ThreeHops]:
    needs("root", "netns", "veth", "bridge", "htb", "vxlan")
    with ExitStack() as stack:
        yield ThreeHops(stack, tmp_path)


def riding(scene: ThreeHops) -> None:
    """Products of the feed take the circuit from now on."""
    scene.a.hub.ask("PUT", "/v1/feeds/CONDUIT/pin", json={"transport": "static-circuit"})
    scene.a.wait_transport("static-circuit")


def kill(hub: WholeHub) -> None:
    """Ends a hub by SIGKILL, and starts it again."""
    hub.kill_api()
    hub.start()


def used(shown: Shown) -> bool:
    return bool(shown["used_out_bps"] > 0)


def test_products_ride_over_three_hops_with_an_identifier_each(scene: ThreeHops) -> None:
    number = scene.a.order()["circuit"]
    active = scene.a.wait_state(number, "active", 120)
    tags = scene.tags()
    assert len({*tags}) == 3, tags
    assert [end["vlan"] for end in active["ends"]] == [tags[0], tags[2]]
    assert active["measured_out_bps"] > 0.8 * 20 * M
    riding(scene)
    assert scene.seen(20) == scene.expected()
    assert scene.a.connections()
    scene.a.wait_shown(number, used, "use of the circuit")
    scene.a.hub.ask("DELETE", f"/v1/circuits/{number}")
    scene.wait_states([], [])
    scene.wait_untouched()


@pytest.mark.parametrize("victim", ["a", "b"])
def test_a_hub_killed_at_each_step_leaves_the_whole_path_or_none(scene: ThreeHops, victim: str) -> None:
    hub = scene.a.hub if victim == "a" else scene.b.hub
    number = scene.a.order(hold_s=300)["circuit"]
    kill(hub)
    scene.wait_states(["held"], ["held"])
    scene.a.hub.ask("POST", f"/v1/circuits/{number}/commit", json={})
    kill(hub)
    scene.wait_states(["active"], ["active"])
    riding(scene)
    assert scene.seen(10) == scene.expected()
    kill(hub)
    scene.wait_states(["active"], ["active"])
    scene.a.wait_transport("static-circuit")
    assert scene.seen(10) == scene.expected()
    scene.a.hub.ask("DELETE", f"/v1/circuits/{number}")
    kill(hub)
    scene.wait_states([], [])
    scene.wait_untouched()


def test_a_refusal_in_the_second_domain_leaves_the_first_one_empty(scene: ThreeHops) -> None:
    passage = {"hub": {"port": "a-hub"}, "sites": [{"port": "a-far"}], "description": "a campaign"}
    rates = {"rate_out_bps": PORT_BPS - 10 * M, "rate_in_bps": PORT_BPS - 10 * M}
    scene.b.hub.ask("POST", "/v1/circuits", json=passage | rates)
    scene.wait_states([], ["active"])
    wish = {"sites": [{"site": "far.example"}], "driver": "nsi", "provider": "b", "hold_s": 300}
    rates = {"rate_out_bps": 20 * M, "rate_in_bps": 20 * M}
    for killed in ([], [scene.a.hub], [scene.b.hub]):
        for hub in killed:
            kill(hub)
        answer = scene.a.refused("POST", "/v1/circuits", json=wish | rates)
        assert answer.status_code == 409
        assert "00705" in answer.text
        assert "circuit 1 holds 190 Mb/s out" in answer.text
        scene.wait_states([], ["active"])
        assert scene.lab.output("hub", ["ip", "-brief", "link", "show", "type", "vxlan"]) == ""
        assert scene.lab.output("far", ["ip", "-brief", "link", "show", "type", "vxlan"]) == ""
