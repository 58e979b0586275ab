"""The chart before a real API server: installed, upgraded, rolled back, refused, and held to the pod standard."""

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from kit.charts import CHART, Object, helm, one, options, rendered
from kit.cluster_tools import tool
from kit.control_plane import ControlPlane
from kit.patience import wait_for
from kit.schemas import write_schemas

# Requirements of values-ha.yaml beyond Kubernetes itself.
WITHOUT_OPERATOR = {"monitoring.serviceMonitor.enabled": "false", "monitoring.rules.enabled": "false"}
HA = ("--values", str(CHART / "values-ha.yaml"))
TRIAL = {"trial.sites": "3", "trial.tokensSecret": '"tokens"'}
SECRETS = {
    "downburst-ledger": ["url"],
    "downburst-kafka": ["password", "ca.crt"],
    "downburst-metrics": ["token"],
    "tokens": ["wx-downburst-site-0"],
}
CONTENTS = {"url": b"postgresql://downburst@db.example.edu/downburst", "file": b"sqlite:////var/lib/ledger.sqlite"}
RELEASES: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "defaults": ({}, ()),
    "ha": (WITHOUT_OPERATOR | TRIAL, HA),
    "multicast": ({"multicast.hostNetwork": "true", "multicast.interface": '"192.0.2.7"'}, ()),
    "circuits of senders": (
        {"senders.replicas": "2", "senders.hostNetwork": "true", "senders.capabilities": '["NET_ADMIN"]'}
        | WITHOUT_OPERATOR,
        HA,
    ),
    "circuits": ({"hub.capabilities": '["NET_ADMIN"]', "persistence.enabled": "false"}, ()),
}


def test_a_release_is_installed_upgraded_taken_back_and_removed(plane: ControlPlane, namespace: str) -> None:
    installed(plane, namespace)
    pods = wait_for("the hub's pod", lambda: pods_of(plane, namespace))
    assert [pod["metadata"]["name"] for pod in pods] == ["wx-downburst-0"]
    first = hub(plane, namespace)["spec"]
    assert sites_service(plane, namespace)["type"] == "ClusterIP"

    changed = {"sites.service.type": '"NodePort"', "hub.settings": '{"DOWNBURST_TIME_SCALE": "2"}'}
    installed(plane, namespace, changed)
    assert sites_service(plane, namespace)["ports"][0]["nodePort"] > 0
    environment = hub(plane, namespace)["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "DOWNBURST_TIME_SCALE", "value": "2"} in environment

    done("rollback", "wx", "1", plane=plane, namespace=namespace)
    assert hub(plane, namespace)["spec"] == first
    service = sites_service(plane, namespace)
    assert (service["type"], "nodePort" in service["ports"][0]) == ("ClusterIP", False)

    done("uninstall", "wx", plane=plane, namespace=namespace)
    assert names(plane, f"/apis/apps/v1/namespaces/{namespace}/statefulsets") == []
    wait_for("the end of its pods", lambda: not pods_of(plane, namespace))
    # Sites' certificates and products are on the volume: the removal of a release keeps it; operators delete it.
    assert names(plane, f"/api/v1/namespaces/{namespace}/persistentvolumeclaims") == ["data-wx-downburst-0"]


def test_parts_beside_the_hub_run_in_pods_of_the_standard_restricted(plane: ControlPlane, namespace: str) -> None:
    make_secrets(plane, namespace)
    values, more = RELEASES["ha"]
    installed(plane, namespace, values, *more)
    parts = ("alarm-service", "circuit-service", "latency-service", "scheduler")
    wanted = sorted(["hub", *parts, *parts, "site", "site", "site"])
    wait_for("the pods of all parts", lambda: components(plane, namespace) == wanted)
    assert refusals(plane, namespace) == []
    budgets = names(plane, f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets")
    assert budgets == [f"wx-downburst-{part}" for part in parts]
    for pod in pods_of(plane, namespace):
        mounted = [volume["name"] for volume in pod["spec"]["volumes"]]
        assert not any(name.startswith("kube-api-access") for name in mounted), "no part asks the cluster anything"


@pytest.mark.parametrize("release", RELEASES)
def test_the_server_knows_every_field(plane: ControlPlane, namespace: str, release: str) -> None:
    values, more = RELEASES[release]
    for item in rendered(values, *more):
        item["metadata"].pop("namespace", None)
        if item["kind"] != "Pod" or release in ("defaults", "ha"):
            plane.tried(item, namespace)


@pytest.mark.parametrize("release", RELEASES)
def test_kubeconform_with_the_servers_own_schemas_finds_nothing(schemas: Path, release: str) -> None:
    values, more = RELEASES[release]
    objects = rendered(values, *more)
    assert conformity(schemas, objects) == []
    for item in objects:
        if item["kind"] == "StatefulSet":
            item["spec"]["template"]["spec"]["hostNetworking"] = True
    assert any("hostNetworking" in found for found in conformity(schemas, objects)), "a wrong field would be found"


def test_what_helm_test_and_an_upgrade_run_is_admitted(plane: ControlPlane, namespace: str) -> None:
    values, more = RELEASES["ha"]
    objects = rendered(values, *more)
    for kind, name in (("Pod", "wx-downburst-answers"), ("Job", "wx-downburst-migrate")):
        item = one(objects, kind, name)
        plane.ask(plane.place_of(item, namespace), method="POST", body=item)
    wait_for("both pods", lambda: components(plane, namespace) == ["migrate", "test"])
    hooks = {item["metadata"]["annotations"]["helm.sh/hook"] for item in objects if "annotations" in item["metadata"]}
    assert hooks == {"test", "pre-install,pre-upgrade"}


def test_the_hosts_network_needs_a_namespace_that_grants_it(plane: ControlPlane, namespace: str) -> None:
    installed(plane, namespace, RELEASES["multicast"][0])
    told = wait_for("a refusal of the pod", lambda: refusals(plane, namespace))
    assert "host namespaces (hostNetwork=true)" in told[0]
    assert pods_of(plane, namespace) == []
    grant = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}
    plane.change(f"/api/v1/namespaces/{namespace}", grant)
    # The controller retries by itself, at growing intervals.
    wait_for("the hub's pod", lambda: pods_of(plane, namespace), 120)


def test_a_missing_secret_is_refused_in_a_sentence(plane: ControlPlane, namespace: str) -> None:
    told = refused(plane, namespace, {"ledger.existingSecret": '"ledger"'}, "--dry-run=server")
    assert f"the secret ledger, which ledger.existingSecret names, is not in namespace {namespace}" in told


def test_a_secret_without_its_key_is_refused_in_a_sentence(plane: ControlPlane, namespace: str) -> None:
    secret(plane, namespace, "ledger", "dsn")
    told = refused(plane, namespace, {"ledger.existingSecret": '"ledger"'})
    assert f"the secret ledger in namespace {namespace} has no key url, which ledger.existingSecret needs" in told
    assert names(plane, f"/apis/apps/v1/namespaces/{namespace}/statefulsets") == [], "nothing is half installed"


def test_a_ledger_that_is_no_postgresql_is_refused_in_a_sentence(plane: ControlPlane, namespace: str) -> None:
    secret(plane, namespace, "ledger", "file")
    told = refused(plane, namespace, {"ledger.existingSecret": '"ledger"', "ledger.urlKey": '"file"'})
    assert f"key file of the secret ledger in namespace {namespace} is no URL of a PostgreSQL; write" in told
    assert "sqlite" not in told, "what is in secrets stays there"


def test_a_cluster_without_prometheus_operator_refuses_its_kinds(plane: ControlPlane, namespace: str) -> None:
    told = refused(plane, namespace, {"monitoring.serviceMonitor.enabled": "true"})
    assert 'no matches for kind "ServiceMonitor"' in told
    assert names(plane, f"/apis/apps/v1/namespaces/{namespace}/statefulsets") == [], "nothing is half installed"


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"sites.port": "70000"}, "'/sites/port'"),
        ({"replicas": "2"}, "replicas"),
        ({"kafka.products": '"ingest"'}, "kafka.servers names none"),
        ({"scheduler.replicas": "2"}, "existingSecret"),
        ({"alarmService.replicas": "2"}, "existingSecret"),
    ],
)
def test_an_upgrade_with_wrong_values_changes_nothing(
    plane: ControlPlane, namespace: str, values: dict[str, str], word: str
) -> None:
    installed(plane, namespace)
    before = hub(plane, namespace)["metadata"]["generation"]
    assert word in refused(plane, namespace, values)
    assert hub(plane, namespace)["metadata"]["generation"] == before
    history = json.loads(done("history", "wx", "-o", "json", plane=plane, namespace=namespace))
    assert [(entry["revision"], entry["status"]) for entry in history] == [(1, "deployed")]


def test_an_upgrade_while_the_server_is_away_is_made_later(plane: ControlPlane, namespace: str) -> None:
    installed(plane, namespace)
    plane.kill_server()
    try:
        told = refused(plane, namespace, {"hub.name": '"east"'})
    finally:
        plane.start_server()
    assert "connection refused" in told
    installed(plane, namespace, {"hub.name": '"east"'})
    environment = hub(plane, namespace)["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "DOWNBURST_NAME", "value": "east"} in environment


@pytest.fixture(scope="module")
def schemas(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("schemas")
    assert write_schemas(plane.ask("/openapi/v2"), folder) > 100
    return folder


def conformity(schemas: Path, objects: list[Object]) -> list[str]:
    """The findings of kubeconform."""
    location = f"{schemas}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    argv = [tool("kubeconform", kind="checks"), "-strict", "-output", "json", "-schema-location", location]
    run = subprocess.run(
        argv, input=yaml.safe_dump_all(objects), capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode in (0, 1), run.stderr
    found = [resource["msg"] for resource in json.loads(run.stdout)["resources"]]
    assert (run.returncode == 0) == (found == [])
    return found


def installed(plane: ControlPlane, namespace: str, values: dict[str, str] | None = None, *more: str) -> None:
    """Installs or upgrades, without jobs that run first: they would wait for a node."""
    done("upgrade", "--install", "wx", str(CHART), *options(values or {}), *more, plane=plane, namespace=namespace)


def refused(plane: ControlPlane, namespace: str, values: dict[str, str], *more: str) -> str:
    """Helm's message about an upgrade that it, the chart or the server refuses."""
    arguments = ["upgrade", "--install", "wx", str(CHART), *options(values), *more]
    run = helm(*arguments, "--no-hooks", "--namespace", namespace, kubeconfig=plane.kubeconfig)
    assert run.returncode != 0, run.stdout
    return run.stderr


def done(*arguments: str, plane: ControlPlane, namespace: str) -> str:
    hooks = [] if arguments[0] == "history" else ["--no-hooks"]
    run = helm(*arguments, *hooks, "--namespace", namespace, kubeconfig=plane.kubeconfig)
    assert run.returncode == 0, run.stderr
    return run.stdout


def make_secrets(plane: ControlPlane, namespace: str) -> None:
    for name, keys in SECRETS.items():
        secret(plane, namespace, name, *keys)


def secret(plane: ControlPlane, namespace: str, name: str, *keys: str) -> None:
    data = {key: base64.b64encode(CONTENTS.get(key, b"x")).decode() for key in keys}
    path = f"/api/v1/namespaces/{namespace}/secrets"
    plane.ask(path, method="POST", body={"metadata": {"name": name}, "data": data})


def hub(plane: ControlPlane, namespace: str) -> Object:
    found: Object = plane.ask(f"/apis/apps/v1/namespaces/{namespace}/statefulsets/wx-downburst")
    return found


def sites_service(plane: ControlPlane, namespace: str) -> Object:
    found: Object = plane.ask(f"/api/v1/namespaces/{namespace}/services/wx-downburst-sites")["spec"]
    return found


def pods_of(plane: ControlPlane, namespace: str) -> list[Object]:
    found: list[Object] = plane.ask(f"/api/v1/namespaces/{namespace}/pods")["items"]
    return found


def components(plane: ControlPlane, namespace: str) -> list[str]:
    """The components of a namespace's pods, one word for each."""
    return sorted(pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in pods_of(plane, namespace))


def refusals(plane: ControlPlane, namespace: str) -> list[str]:
    """The reasons why controllers could not create pods."""
    events: list[dict[str, Any]] = plane.ask(f"/api/v1/namespaces/{namespace}/events")["items"]
    return [event["message"] for event in events if event["reason"] == "FailedCreate"]


def names(plane: ControlPlane, path: str) -> list[str]:
    return [item["metadata"]["name"] for item in plane.ask(path)["items"]]
