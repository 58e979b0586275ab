"""A real kubelet with containerd runs the chart's pods: products through them, by multicast between them."""

import json
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kit.capabilities import needs, skip
from kit.cluster_node import cluster_node
from kit.cluster_scene import FEEDS, SENDERS, SITES, ClusterScene
from kit.control_plane import Object, control_plane
from kit.kafka import kafka
from kit.namespaces import Lab
from kit.patience import wait_for
from kit.postgres import postgres

pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in. <ssl.SSLSocket")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterScene]:
    """The servers are on one host of a lab, like the test; the node is the other host."""
    image = Path(os.environ.get("DOWNBURST_IMAGE_ARCHIVE", ""))
    if not image.is_file():
        skip("no node or no image for pods was built: as root, make test-cluster builds both")
    needs("netns")
    with Lab(["servers", "node-1"]) as lab, lab.inside("servers"):
        address = lab.address("servers")
        with (
            control_plane(address) as plane,
            kafka(address) as broker,
            postgres(address) as server,
            cluster_node(lab, "node-1", plane, image) as node,
        ):
            yield ClusterScene(tmp_path_factory.mktemp("release"), plane, node, broker, server)


@pytest.fixture(scope="module")
def usual_s(scene: ClusterScene) -> float:
    """The latency of deliveries without disturbances."""
    # Deliveries that a start delayed are among the first.
    scene.p99_s(500)
    found = scene.p99_s(500)
    print(f"p99 of deliveries by multicast between pods: at most {found:g} s")
    return found


def test_products_come_to_three_sites_by_multicast_between_pods(scene: ClusterScene, usual_s: float) -> None:
    plans = {plan["feed"]: plan["transport"] for plan in scene.ask("GET", "/v1/plans")}
    assert plans == dict.fromkeys(FEEDS, "multicast")
    ways = {
        (row["site"], row["transport"]): row["count"]
        for row in scene.ask("GET", "/v1/latency", params={"feed": "NGRID", "kind": "distribution"})
    }
    assert all(ways.get((site, "multicast"), 0) > 0 for site in SITES), ways
    assert all(scene.stored(site, "DEMO") for site in SITES)


def test_an_upgrade_that_rolls_all_parts(scene: ClusterScene, usual_s: float) -> None:
    before, began = scene.pods(), time.time()
    scene.bring(hub={"settings": {"DOWNBURST_EGRESS_CAPACITY_BPS": "900000000"}})
    scene.recovers("all parts rolled by an upgrade", began)
    after = scene.pods()
    kept = {name for name, pod in after.items() if name in before and pod["metadata"]["uid"] == uid(before[name])}
    assert kept == {*SITES, "source"}, "everything that has the setting was replaced"
    scene.is_live_again(usual_s)


def test_a_node_that_is_drained_keeps_one_sender(scene: ClusterScene, usual_s: float) -> None:
    first, second = SENDERS
    drain = ("drain", "node-1", "--delete-emptydir-data", "--timeout=60s", "--pod-selector")
    before, began = scene.pods()[first], time.time()
    scene.kubectl(*drain, f"statefulset.kubernetes.io/pod-name={first}")
    scene.recovers("a sender drained", began)
    with pytest.raises(RuntimeError, match="disruption budget"):
        scene.kubectl(*drain[:3], "--timeout=3s", "--pod-selector", f"statefulset.kubernetes.io/pod-name={second}")
    scene.kubectl("uncordon", "node-1")
    wait_for("the sender to be back", partial(is_ready, scene, first, other_than=uid(before)), 120)
    scene.is_live_again(usual_s)


def test_an_api_server_that_is_away_for_a_minute(scene: ClusterScene, usual_s: float) -> None:
    before = {name: lives(pod) for name, pod in scene.pods().items()}
    began = time.time()
    scene.plane.kill_server()
    try:
        while time.time() < began + AWAY_S:
            # Progress is checked repeatedly, as long as the server is away.
            scene.source.more(20)
            scene.waits_for_newest()
        scene.recovers("the API server killed", began)
    finally:
        scene.plane.start_server()
    assert {name: lives(pod) for name, pod in scene.pods().items()} == before, "no pod needed it"
    scene.is_live_again(usual_s)


def test_a_sender_that_is_killed(scene: ClusterScene, usual_s: float) -> None:
    for name in SENDERS:
        before, began = scene.pods()[name], time.time()
        assert scene.node.kill_containers(before) > 0
        scene.recovers(f"{name} killed", began)
        wait_for("the sender to be back", partial(is_ready, scene, name, more_than=lives(before)[1]), 120)
        assert uid(scene.pods()[name]) == uid(before), "the kubelet starts it again where it was"
    scene.is_live_again(usual_s)


def test_circuits_and_alarms_that_move_beside_the_hub(scene: ClusterScene, usual_s: float) -> None:
    began = time.time()
    scene.bring(circuitService={"replicas": 1}, alarmService={"replicas": 1})
    scene.recovers("circuits and alarms moved beside the hub", began)
    for part in ("circuit service", "alarm service"):
        wait_for(f"the {part} at work", partial(is_at_work, scene, part), 120)
    wait_for("the parts' signs of life", partial(passes, scene, {"circuit-service", "alarm-service"}), 120)
    scene.is_live_again(usual_s)


def test_nothing_that_was_acknowledged_is_lost_or_doubled(scene: ClusterScene) -> None:
    scene.source.more(100)
    products = scene.finish()
    print(f"{products} products, each at {len(SITES)} sites once")


def test_without_a_network_that_carries_groups_feeds_go_by_unicast_and_say_why(scene: ClusterScene) -> None:
    scene.bring(multicast={"podNetwork": False})
    # Plans first: for a moment after the start of a hub, sites are served by unicast, whatever is planned.
    plan = wait_for("a plan that says why", partial(plan_that_says, scene, "NGRID", "multicast is switched off"), 120)
    assert plan["pin"]["transport"] == "multicast"
    for feed in FEEDS:
        wait_for(f"{feed} by unicast at all sites", partial(scene.is_carried, feed, "unicast"), 120)


def plan_that_says(scene: ClusterScene, feed: str, words: str) -> Object | None:
    """The feed's plan, if it contains these words."""
    (plan,) = [plan for plan in scene.ask("GET", "/v1/plans") if plan["feed"] == feed]
    return plan if words in json.dumps(plan) else None


def is_at_work(scene: ClusterScene, part: str) -> bool:
    """True if a part's pod reports that it is the active one."""
    return f"at work as {part}" in scene.kubectl("logs", f"deployment/wx-downburst-{part.replace(' ', '-')}")


def passes(scene: ClusterScene, names: set[str]) -> bool:
    """True if all probes of the hub pass, and these are among them."""
    probes: dict[str, str] = scene.ask("GET", "/v1/status")["probes"]
    return names <= probes.keys() and set(probes.values()) == {"ok"}


def uid(pod: Object) -> str:
    return str(pod["metadata"]["uid"])


def lives(pod: Object) -> tuple[str, int]:
    """The pod's identity, and the number of restarts of its container."""
    return uid(pod), int(pod["status"]["containerStatuses"][0]["restartCount"])


def is_ready(scene: ClusterScene, name: str, *, other_than: str = "", more_than: int = -1) -> bool:
    """True if a pod is ready: another one than before, or one with a restarted container."""
    pod = scene.pods().get(name)
    if pod is None or uid(pod) == other_than or not pod["status"].get("containerStatuses"):
        return False
    status = pod["status"]["containerStatuses"][0]
    return bool(status["ready"] and status["restartCount"] > more_than)


AWAY_S = 60
