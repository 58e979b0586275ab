"""The chart: values with documentation, a schema that refuses other values, templates that use what exists."""

import copy
import itertools
import json
import re
import subprocess
import sys
from typing import Any

import jsonschema_rs
import pytest
import yaml  # type: ignore[import-untyped]

from downburst.settings.hub import load_settings
from kit.charts import CHART, TEMPLATE, helm, leaves

TEMPLATES = sorted(path for path in (CHART / "templates").rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def values() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return loaded


@pytest.fixture(scope="module")
def schema() -> Any:
    return jsonschema_rs.Draft7Validator(json.loads((CHART / "values.schema.json").read_text()))


def test_the_defaults_are_valid(values: dict[str, Any], schema: Any) -> None:
    schema.validate(values)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("replicas", 2),
        ("image.digest", "sha256:0"),
        ("image.repository", ""),
        ("image.pullPolicy", "Sometimes"),
        ("hub.settings", {"LD_PRELOAD": "x"}),
        ("hub.settings", {"DOWNBURST_EGRESS_CAPACITY_BPS": 1000}),
        ("hub.stopSeconds", 0),
        ("sites.port", 70_000),
        ("sites.service.type", "ExternalName"),
        ("persistence.size", "a lot"),
        ("multicast.hostNetwork", True),
        ("resources.request", {}),
        ("ledger.url", "postgresql://downburst:secret@db/downburst"),
        ("kafka.servers", "kafka1.example.edu"),
        ("kafka.security", "sasl-tls"),
        ("kafka.products", "there"),
        ("hub.capabilities", ["SYS_ADMIN"]),
        ("senders.capabilities", ["SYS_ADMIN"]),
        ("networkPolicy.sitesFrom", ["everywhere"]),
        ("trial.sites", 3),
        ("scheduler.replicas", 2),
        ("latencyService.replicas", 1),
        ("circuitService.replicas", 1),
        ("alarmService.replicas", 1),
        ("parts.resources", {"request": {}}),
        ("mail.url", "smtp://downburst:secret@mail"),
    ],
)
def test_a_wrong_value_is_refused(path: str, value: object, values: dict[str, Any], schema: Any) -> None:
    assert not schema.is_valid(with_value(values, path, value))


def test_multicast_on_the_hosts_network_needs_its_interface(values: dict[str, Any], schema: Any) -> None:
    wanted = with_value(values, "multicast", {"hostNetwork": True, "interface": "192.0.2.7"})
    schema.validate(wanted)


def test_parts_beside_the_hub_need_their_servers(values: dict[str, Any], schema: Any) -> None:
    wanted = with_value(with_value(values, "scheduler.replicas", 2), "ledger.existingSecret", "ledger")
    assert not schema.is_valid(wanted)
    schema.validate(with_value(wanted, "kafka.servers", "kafka1.example.edu:9093,kafka2.example.edu:9093"))


def test_each_value_is_explained_in_a_sentence() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    block = ""
    for before, line in itertools.pairwise(lines):
        if key := re.match(r"^([A-Za-z]+):", line):
            block = key[1]
        # Keys inside `resources` are Kubernetes' own; the block is explained as a whole.
        explained = block != "resources" or bool(key)
        if explained and re.match(r"^ *[A-Za-z]+: *\S", line):
            assert re.match(r'^ *# .*[."]$', before), f"no sentence above: {line}"


def test_templates_use_each_value_and_no_other(values: dict[str, Any]) -> None:
    text = "\n".join(path.read_text() for path in TEMPLATES)
    used = set(re.findall(r"\.Values\.([A-Za-z.]+)", text))
    assert used == set(leaves(values))


def test_template_actions_are_balanced() -> None:
    for path in TEMPLATES:
        words = re.findall(r"\{\{-? *(if|with|range|define|end|else)\b", path.read_text())
        depth = 0
        for word in words:
            depth += {"end": -1, "else": 0}.get(word, 1)
            assert depth >= 0, path.name
        assert depth == 0, path.name


def test_chart_and_distribution_have_the_same_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = (CHART.parents[1] / "pyproject.toml").read_text()
    assert f'version = "{chart["appVersion"]}"' in project
    assert chart["apiVersion"] == "v2"


def test_the_table_of_values_is_that_of_the_values() -> None:
    script = CHART.parents[1] / "scripts" / "chart_readme.py"
    done = subprocess.run([sys.executable, str(script), "--check"], check=False)
    assert done.returncode == 0, "run .venv/bin/python scripts/chart_readme.py"


def test_what_the_chart_ships_for_prometheus_is_that_of_monitoring() -> None:
    for name in ("downburst.rules.yml", "grafana-downburst.json"):
        assert (CHART / "files" / name).resolve() == CHART.parents[1] / "monitoring" / name


@pytest.mark.all
def test_parts_beside_the_hub_render_with_its_settings() -> None:
    settings = {
        "ledger.existingSecret": "ledger",
        "kafka.servers": "kafka1.example.edu:9093",
        "kafka.security": "sasl-tls",
        "kafka.saslUser": "downburst",
        "kafka.existingSecret": "kafka",
        "kafka.passwordKey": "password",
        "kafka.caKey": "ca.crt",
        "scheduler.replicas": "2",
        "latencyService.replicas": "1",
        "circuitService.replicas": "1",
        "alarmService.replicas": "2",
        "hub.settings.DOWNBURST_TIME_SCALE": "2",
    }
    options = [word for name, value in settings.items() for word in (_flag(name), f"{name}={value}")]
    done = helm("template", "ldm", *TEMPLATE[2:], *options)
    assert done.returncode == 0, done.stderr
    objects = {(item["kind"], item["metadata"]["name"]): item for item in yaml.safe_load_all(done.stdout) if item}
    parts = {name for kind, name in objects if kind in ("Deployment", "PodDisruptionBudget")}
    assert parts == {f"ldm-downburst-{name}" for name in ("scheduler", *SERVICES)}
    assert ("PodDisruptionBudget", "ldm-downburst-latency-service") not in objects
    hub = objects["StatefulSet", "ldm-downburst"]["spec"]["template"]["spec"]
    scheduler = objects["Deployment", "ldm-downburst-scheduler"]["spec"]["template"]["spec"]
    for pod in (hub, scheduler):
        container = pod["containers"][0]
        environment = {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}
        assert environment["DOWNBURST_LEDGER_URL"] == {"secretKeyRef": {"name": "ledger", "key": "url"}}
        assert environment["DOWNBURST_KAFKA__SASL_PASSWORD_FILE"] == "/etc/downburst/kafka/password"
        assert environment["DOWNBURST_KAFKA__CA_FILE"] == "/etc/downburst/kafka/ca.crt"
        assert (environment["DOWNBURST_SCHEDULER__APART"], environment["DOWNBURST_LATENCY_APART"]) == ("true", "true")
        assert (environment["DOWNBURST_CIRCUITS__APART"], environment["DOWNBURST_ALARMS__APART"]) == ("true", "true")
        assert environment["DOWNBURST_TIME_SCALE"] == "2"
        assert {"kafka", "temporary"} <= {mount["name"] for mount in container["volumeMounts"]}
    assert scheduler["containers"][0]["args"] == ["downburst", "scheduler"]
    for name in SERVICES:
        service = objects["Deployment", f"ldm-downburst-{name}"]["spec"]["template"]["spec"]
        assert service["containers"][0]["args"] == ["downburst", name]
    written = {name: value for name, value in environment.items() if isinstance(value, str)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**written, "DOWNBURST_LEDGER_URL": "postgresql://downburst@db/downburst"}.items():
            patch.setenv(name, value)
        assert load_settings().scheduler.apart, "the settings that the chart writes are settings"


SERVICES = ("latency-service", "circuit-service", "alarm-service")


def _flag(name: str) -> str:
    return "--set-string" if name.startswith("hub.settings") else "--set"


def with_value(values: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    changed = copy.deepcopy(values)
    *parents, last = path.split(".")
    inner = changed
    for name in parents:
        inner = inner[name]
    inner[last] = value
    return changed
