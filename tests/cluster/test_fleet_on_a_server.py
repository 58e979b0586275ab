"""The fleet of pods before a real API server: the contract, the lease, the chart's role, a server that goes away."""

import asyncio
import json
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from kubernetes.client import ApiClient, Configuration

from downburst.fleet.kubernetes import KubernetesFleet, manifest_of
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import BadSettings, Failure, FleetAway
from kit.charts import Object, helm, one, options, rendered
from kit.control_plane import ControlPlane
from kit.fleets import FleetContract, Handle, until_named

# The client leaves a connection of a refused request to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in. <ssl.SSLSocket")

CHART_VALUES = {
    "ledger.existingSecret": '"ledger"',
    "kafka.servers": '"kafka.example.edu:9093"',
    "kafka.products": '"ingest"',
    "senders.fleet.enabled": "true",
}


@pytest.fixture(scope="module")
def controlled(plane: ControlPlane) -> ControlPlane:
    """Its controllers make pods of workloads."""
    return plane


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Object:
    """The workload as the chart creates it."""
    file = tmp_path_factory.mktemp("chart") / "senders.yaml"
    file.write_text(one(rendered(CHART_VALUES), "ConfigMap", "wx-downburst-fleet")["data"]["senders.yaml"])
    return manifest_of(file)


class Pods(Handle):
    """A fleet by a client of its own, seen through the API server."""

    def __init__(
        self,
        plane: ControlPlane,
        namespace: str,
        manifest: Object,
        *,
        identity: str = "first",
        token: str = "admin",
        owner: str = "",
        clock: Any = None,
    ) -> None:
        told = Configuration(host=plane.url, api_key={"authorization": f"Bearer {token}"})
        told.ssl_ca_cert = str(plane.ca_file)
        told.retries = False
        self._plane = plane
        self.path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets/wx-downburst-sender"
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        client = ApiClient(told)
        OPENED.append(client)
        self.fleet = KubernetesFleet(
            client, manifest, namespace=namespace, identity=identity, owner=owner, clock=clock
        )

    def named(self) -> set[int]:
        pods = self._plane.ask(self._pods)["items"]
        live = [pod["metadata"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return {int(pod["name"].rpartition("-")[2]) for pod in live if "sender" in pod["name"]}

    def remove_one(self, number: int) -> None:
        # The whole workload is removed: the controllers, and not the fleet, replace a single pod.
        del number
        self._plane.ask(self.path, method="DELETE")


@pytest.fixture(autouse=True)
def connections_end() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().rest_client.pool_manager.clear()


OPENED: list[ApiClient] = []


@pytest.fixture
def handle(controlled: ControlPlane, namespace: str, manifest: Object) -> Handle:
    return Pods(controlled, namespace, manifest)


class TestPods(FleetContract):
    """The contract without readiness, which only a node can report."""

    async def test_what_somebody_changed_is_changed_back(self, handle: Pods, controlled: ControlPlane) -> None:
        await until_named(handle, 2)
        controlled.change(handle.path, {"spec": {"replicas": 5}})
        await until_named(handle, 2)
        assert controlled.ask(handle.path)["spec"]["replicas"] == 2

    async def test_what_an_operator_adds_beside_stays(self, handle: Pods, controlled: ControlPlane) -> None:
        await handle.fleet.bring_to(1)
        controlled.change(handle.path, {"metadata": {"annotations": {"operator": "was here"}}})
        await handle.fleet.bring_to(2)
        assert controlled.ask(handle.path)["metadata"]["annotations"]["operator"] == "was here"


async def test_of_two_one_decides_and_the_other_takes_over(
    plane: ControlPlane, namespace: str, manifest: Object
) -> None:
    clock = FakeClock()
    first = Pods(plane, namespace, manifest, identity="first", clock=clock).fleet
    second = Pods(plane, namespace, manifest, identity="second", clock=clock).fleet
    assert (await first.bring_to(2)).mine
    told = await second.bring_to(5)
    assert (told.mine, told.wanted) == (False, 2)
    clock.advance(10)
    assert (await first.bring_to(2)).mine
    clock.advance(10)
    assert not (await second.bring_to(5)).mine, "it was renewed meanwhile"
    clock.advance(16)
    assert (await second.bring_to(3)).mine, "nobody renewed it for longer than it lasts"
    assert not (await first.bring_to(2)).mine, "who was displaced decides no more"
    await second.close()
    assert (await first.bring_to(1)).wanted == 1, "what was given back is taken at once"


async def test_of_two_at_the_same_moment_one_decides(plane: ControlPlane, namespace: str, manifest: Object) -> None:
    fleets = [Pods(plane, namespace, manifest, identity=f"fleet-{n}").fleet for n in range(5)]
    found = await asyncio.gather(*(fleet.bring_to(1) for fleet in fleets), return_exceptions=True)
    # A conflict over the workload itself is an answer for now.
    assert all(isinstance(one_of, FleetAway) or not isinstance(one_of, BaseException) for one_of in found)
    later = await asyncio.gather(*(fleet.bring_to(1) for fleet in fleets))
    assert [standing.mine for standing in later].count(True) == 1


async def test_a_server_that_is_away_is_said_and_waited_for(
    plane: ControlPlane, namespace: str, manifest: Object
) -> None:
    fleet = Pods(plane, namespace, manifest).fleet
    await fleet.bring_to(2)
    plane.kill_server()
    with pytest.raises(FleetAway, match="API server does not answer"):
        await fleet.bring_to(3)
    plane.start_server()
    assert (await fleet.standing()).wanted == 2, "nothing changed meanwhile"
    assert (await fleet.bring_to(3)).wanted == 3


async def test_the_charts_role_is_enough_and_no_more(plane: ControlPlane, namespace: str, manifest: Object) -> None:
    values = CHART_VALUES | {"checkSecrets": "false"}
    chart = Path(__file__).parents[2] / "charts/downburst"
    done = helm(
        *("install", "wx", str(chart), "--namespace", namespace, "--no-hooks", *options(values)),
        kubeconfig=plane.kubeconfig,
    )
    assert done.returncode == 0, done.stderr
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/wx-downburst-fleet/token"
    token = plane.ask(account, method="POST", body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"})
    token = token["status"]["token"]
    pods = Pods(plane, namespace, manifest, token=token, owner="wx-downburst-fleet")
    assert (await pods.fleet.bring_to(2)).wanted == 2
    owners = plane.ask(pods.path)["metadata"]["ownerReferences"]
    assert [(owner["kind"], owner["name"]) for owner in owners] == [("Deployment", "wx-downburst-fleet")]
    for forbidden in ("secrets", "configmaps", "pods"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            plane.ask(f"/api/v1/namespaces/{namespace}/{forbidden}", token=token)
        assert refused.value.code == 403
    hub = f"/apis/apps/v1/namespaces/{namespace}/statefulsets/wx-downburst"
    with pytest.raises(urllib.error.HTTPError) as refused:
        plane.ask(hub, method="DELETE", token=token)
    assert refused.value.code == 403


async def test_an_account_without_the_role_is_told_so(plane: ControlPlane, namespace: str, manifest: Object) -> None:
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    token = plane.ask(account, method="POST", body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"})
    fleet = Pods(plane, namespace, manifest, token=token["status"]["token"]).fleet
    with pytest.raises(Failure, match="give its account the chart's role"):
        await fleet.bring_to(1)


async def test_a_workload_that_the_server_refuses_is_told_in_its_words(
    plane: ControlPlane, namespace: str, manifest: Object
) -> None:
    broken = json.loads(json.dumps(manifest))
    broken["spec"]["template"]["spec"]["containers"][0]["image"] = ""
    with pytest.raises(Failure, match="image: Required value"):
        await Pods(plane, namespace, broken).fleet.bring_to(1)


def test_a_file_without_a_workload_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "senders.yaml"
    file.write_text(yaml.safe_dump({"kind": "Deployment"}))
    with pytest.raises(BadSettings, match="holds no StatefulSet"):
        manifest_of(file)
