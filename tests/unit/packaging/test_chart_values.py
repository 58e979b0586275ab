"""The effect of each chart value on the objects that Helm renders, and refused values."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from kit.charts import CHART, Object, leaves, one, pod_template, refusal, rendered

# Rendered by Helm, which make test-all builds.
pytestmark = pytest.mark.all

HUB = ("StatefulSet", "wx-downburst")
SCHEDULER = ("Deployment", "wx-downburst-scheduler")
ALARM_SERVICE = ("Deployment", "wx-downburst-alarm-service")
PARTS = ("scheduler", "latency-service", "circuit-service", "alarm-service")
SITES = ("Service", "wx-downburst-sites")
HTTP = ("Service", "wx-downburst-http")
POLICY = ("NetworkPolicy", "wx-downburst")
MONITOR = ("ServiceMonitor", "wx-downburst")
SITE = ("StatefulSet", "wx-downburst-site")
POD = "spec.template.spec"
CONTAINER = f"{POD}.containers.0"

SENDER = ("StatefulSet", "wx-downburst-sender")
FLEET = ("Deployment", "wx-downburst-fleet")
LEDGER = {"ledger.existingSecret": '"ledger"'}
KAFKA = {"kafka.servers": '"k:9092"'}
APART = LEDGER | KAFKA | {"scheduler.replicas": "2"}
ALARMS = LEDGER | KAFKA | {"alarmService.replicas": "1"}
MAIL = {"mail.existingSecret": '"mail"'}
SMTP = "DOWNBURST_ALARMS__SMTP_URL"
INGEST = LEDGER | KAFKA | {"kafka.products": '"ingest"'}
SENDING = INGEST | {"senders.replicas": "2"}
SIZED = INGEST | {"senders.fleet.enabled": "true"}
SASL = KAFKA | {
    "kafka.security": '"sasl-tls"',
    "kafka.saslUser": '"wx"',
    "kafka.existingSecret": '"kafka"',
    "kafka.passwordKey": '"password"',
}
MONITORED = {"monitoring.serviceMonitor.enabled": "true"}
TRIAL = {"trial.sites": "2", "trial.tokensSecret": '"tokens"'}
POLICED = {"networkPolicy.enabled": "true"}
HOST = {"multicast.hostNetwork": "true", "multicast.interface": '"192.0.2.7"'}

# A value, its setting, other settings, the object that changes, the path in it (env:NAME is a variable of the
# container), and the content at that path.
CHANGES: list[tuple[str, str, dict[str, str], tuple[str, str], str, Any]] = [
    ("image.repository", '"r.example.edu/wx"', {}, HUB, f"{CONTAINER}.image", "r.example.edu/wx:0.1.0"),
    ("image.tag", '"7"', {}, HUB, f"{CONTAINER}.image", "downburst:7"),
    ("image.pullPolicy", '"Never"', {}, HUB, f"{CONTAINER}.imagePullPolicy", "Never"),
    ("imagePullSecrets", '["r"]', {}, HUB, f"{POD}.imagePullSecrets", [{"name": "r"}]),
    ("hub.name", '"east"', {}, HUB, "env:DOWNBURST_NAME", "east"),
    ("hub.settings", '{"DOWNBURST_TIME_SCALE": "2"}', {}, HUB, "env:DOWNBURST_TIME_SCALE", "2"),
    ("hub.stopSeconds", "90", {}, HUB, f"{POD}.terminationGracePeriodSeconds", 90),
    (
        *("hub.capabilities", '["NET_ADMIN"]', {}, HUB, f"{CONTAINER}.securityContext.capabilities"),
        {"drop": ["ALL"], "add": ["NET_ADMIN", "DAC_OVERRIDE"]},
    ),
    ("multicast.hostNetwork", "true", HOST, HUB, f"{POD}.hostNetwork", True),
    ("multicast.interface", '"192.0.2.9"', HOST, HUB, "env:DOWNBURST_MULTICAST__INTERFACE", "192.0.2.9"),
    ("multicast.podNetwork", "true", {}, HUB, "env:DOWNBURST_MULTICAST__ENABLED", "true"),
    ("multicast.podNetwork", "true", APART, SCHEDULER, "env:DOWNBURST_MULTICAST__ENABLED", "true"),
    ("sites.port", "7000", {}, SITES, "spec.ports.0.port", 7000),
    ("sites.service.type", '"NodePort"', {}, SITES, "spec.type", "NodePort"),
    ("sites.service.annotations", '{"a": "b"}', {}, SITES, "metadata.annotations", {"a": "b"}),
    ("http.port", "8080", {}, HTTP, "spec.ports.0.port", 8080),
    ("http.service.annotations", '{"a": "b"}', {}, HTTP, "metadata.annotations", {"a": "b"}),
    (
        *("ledger.existingSecret", '"db"', {}, HUB, "env:DOWNBURST_LEDGER_URL"),
        {"secretKeyRef": {"name": "db", "key": "url"}},
    ),
    (
        *("ledger.urlKey", '"dsn"', LEDGER, HUB, "env:DOWNBURST_LEDGER_URL"),
        {"secretKeyRef": {"name": "ledger", "key": "dsn"}},
    ),
    ("kafka.servers", '"k:1,l:2"', {}, HUB, "env:DOWNBURST_KAFKA__SERVERS", "k:1,l:2"),
    ("kafka.products", '"ingest"', KAFKA, HUB, "env:DOWNBURST_KAFKA__PRODUCTS", "ingest"),
    ("kafka.replication", "3", KAFKA, HUB, "env:DOWNBURST_KAFKA__REPLICATION", "3"),
    ("kafka.prefix", '"wx"', KAFKA, HUB, "env:DOWNBURST_KAFKA__PREFIX", "wx"),
    ("kafka.security", '"tls"', KAFKA, HUB, "env:DOWNBURST_KAFKA__SECURITY", "tls"),
    ("kafka.saslMechanism", '"PLAIN"', SASL, HUB, "env:DOWNBURST_KAFKA__SASL_MECHANISM", "PLAIN"),
    ("kafka.saslUser", '"east"', SASL, HUB, "env:DOWNBURST_KAFKA__SASL_USER", "east"),
    ("kafka.existingSecret", '"k"', SASL, HUB, f"{POD}.volumes.1.secret.secretName", "k"),
    (
        *("kafka.passwordKey", '"p"', SASL, HUB, "env:DOWNBURST_KAFKA__SASL_PASSWORD_FILE"),
        "/etc/downburst/kafka/p",
    ),
    ("kafka.caKey", '"ca"', SASL, HUB, "env:DOWNBURST_KAFKA__CA_FILE", "/etc/downburst/kafka/ca"),
    (
        *("kafka.certificateKey", '"crt"', SASL, HUB, "env:DOWNBURST_KAFKA__CERTIFICATE_FILE"),
        "/etc/downburst/kafka/crt",
    ),
    ("kafka.privateKeyKey", '"key"', SASL, HUB, "env:DOWNBURST_KAFKA__KEY_FILE", "/etc/downburst/kafka/key"),
    ("scheduler.replicas", "3", APART, SCHEDULER, "spec.replicas", 3),
    ("latencyService.replicas", "1", APART, ("Deployment", "wx-downburst-latency-service"), "spec.replicas", 1),
    ("circuitService.replicas", "2", APART, ("Deployment", "wx-downburst-circuit-service"), "spec.replicas", 2),
    ("alarmService.replicas", "2", APART, ALARM_SERVICE, "spec.replicas", 2),
    (
        *("parts.resources", '{"requests": {"cpu": "100m"}}', ALARMS, ALARM_SERVICE, f"{CONTAINER}.resources"),
        {"requests": {"cpu": "100m"}},
    ),
    ("mail.existingSecret", '"m"', {}, HUB, f"env:{SMTP}", {"secretKeyRef": {"name": "m", "key": "url"}}),
    ("mail.urlKey", '"smtp"', MAIL, HUB, f"env:{SMTP}", {"secretKeyRef": {"name": "mail", "key": "smtp"}}),
    ("senders.replicas", "3", INGEST, SENDER, "spec.replicas", 3),
    ("senders.hostNetwork", "true", SENDING, SENDER, f"{POD}.hostNetwork", True),
    (
        *("senders.capabilities", '["NET_ADMIN"]', SENDING, SENDER, f"{CONTAINER}.securityContext.capabilities"),
        {"drop": ["ALL"], "add": ["NET_ADMIN", "DAC_OVERRIDE"]},
    ),
    ("senders.stopSeconds", "90", SENDING, SENDER, f"{POD}.terminationGracePeriodSeconds", 90),
    ("senders.copyMegabytesPerFeed", "500", SENDING, SENDER, "env:DOWNBURST_KAFKA__COPY_MB", "500"),
    ("senders.copySize", '"1Ti"', SENDING, SENDER, f"{POD}.volumes.1.emptyDir.sizeLimit", "1Ti"),
    ("senders.fleet.enabled", "true", INGEST, FLEET, f"{CONTAINER}.args", ["downburst", "fleet"]),
    ("senders.fleet.atLeast", "2", SIZED, FLEET, "env:DOWNBURST_FLEET__AT_LEAST", "2"),
    ("senders.fleet.atMost", "9", SIZED, FLEET, "env:DOWNBURST_FLEET__AT_MOST", "9"),
    ("senders.fleet.bitsPerSecondEach", "9000000000", SIZED, FLEET, "env:DOWNBURST_FLEET__SENDER_BPS", "9000000000"),
    ("networkPolicy.enabled", "true", {}, POLICY, "spec.policyTypes", ["Ingress"]),
    (
        *("networkPolicy.sitesFrom", '["192.0.2.0/24"]', POLICED, POLICY, "spec.ingress.0.from"),
        [{"ipBlock": {"cidr": "192.0.2.0/24"}}],
    ),
    (
        *("networkPolicy.httpFrom", '[{"namespaceSelector": {}}]', POLICED, POLICY, "spec.ingress.1.from.1"),
        {"namespaceSelector": {}},
    ),
    ("monitoring.serviceMonitor.enabled", "true", {}, MONITOR, "spec.endpoints.0.port", "http"),
    ("monitoring.serviceMonitor.interval", '"1m"', MONITORED, MONITOR, "spec.endpoints.0.interval", "1m"),
    (
        *("monitoring.serviceMonitor.tokenSecret", '"t"', MONITORED, MONITOR),
        *("spec.endpoints.0.authorization.credentials", {"name": "t", "key": "token"}),
    ),
    (
        *("monitoring.serviceMonitor.tokenKey", '"k"', MONITORED | {"monitoring.serviceMonitor.tokenSecret": '"t"'}),
        *(MONITOR, "spec.endpoints.0.authorization.credentials.key", "k"),
    ),
    ("monitoring.serviceMonitor.labels", '{"release": "p"}', MONITORED, MONITOR, "metadata.labels.release", "p"),
    (
        *("monitoring.rules.enabled", "true", {}, ("PrometheusRule", "wx-downburst")),
        *("spec.groups.0.name", "downburst-alarms"),
    ),
    (
        *("monitoring.dashboard.enabled", "true", {}, ("ConfigMap", "wx-downburst-dashboard")),
        *("metadata.labels.grafana_dashboard", "1"),
    ),
    (
        *("monitoring.dashboard.label", '"board"', {"monitoring.dashboard.enabled": "true"}),
        *(("ConfigMap", "wx-downburst-dashboard"), "metadata.labels.board", "1"),
    ),
    ("trial.sites", "5", TRIAL, SITE, "spec.replicas", 5),
    ("trial.tokensSecret", '"t"', TRIAL, SITE, f"{POD}.volumes.1.secret.secretName", "t"),
    (
        *("persistence.size", '"1Ti"', {}, HUB),
        *("spec.volumeClaimTemplates.0.spec.resources.requests.storage", "1Ti"),
    ),
    ("persistence.storageClass", '"fast"', {}, HUB, "spec.volumeClaimTemplates.0.spec.storageClassName", "fast"),
    ("persistence.enabled", "false", {}, HUB, f"{POD}.volumes.1", {"name": "data", "emptyDir": {}}),
    ("resources", '{"requests": {"cpu": "2"}}', {}, HUB, f"{CONTAINER}.resources.requests.cpu", "2"),
    ("nodeSelector", '{"a": "b"}', {}, HUB, f"{POD}.nodeSelector", {"a": "b"}),
    ("tolerations", '[{"operator": "Exists"}]', {}, HUB, f"{POD}.tolerations", [{"operator": "Exists"}]),
]
APART_SETTINGS = (
    "DOWNBURST_SCHEDULER__APART",
    "DOWNBURST_LATENCY_APART",
    "DOWNBURST_CIRCUITS__APART",
    "DOWNBURST_ALARMS__APART",
)
ON_A_SERVER = {"checkSecrets"}
"""Values that query the API server; the tests on a server cover them."""


@pytest.mark.parametrize(("value", "to", "beside", "where", "path", "wanted"), CHANGES, ids=[c[0] for c in CHANGES])
def test_a_value_reaches_its_place(
    value: str, to: str, beside: dict[str, str], where: tuple[str, str], path: str, wanted: Any
) -> None:
    found = one(rendered(beside | {value: to}), *where)
    assert at(found, path) == wanted


def test_every_value_is_looked_at() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert {change[0] for change in CHANGES} | ON_A_SERVER == set(leaves(values))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"replicas": "2"}, "replicas"),
        ({"kafka.products": '"ingest"'}, "kafka.servers names none; name them as HOST:PORT"),
        (HOST | {"multicast.podNetwork": "true"}, "exclude each other; set one of them to false"),
        ({"multicast.hostNetwork": "true"}, "multicast.interface"),
        ({"scheduler.replicas": "1"}, "existingSecret"),
        (MAIL | {"hub.settings": '{"DOWNBURST_ALARMS__SMTP_URL": "smtp://m"}'}, "both name a mail server"),
        (LEDGER | {"senders.replicas": "1"}, "set kafka.products=ingest"),
        ({"senders.fleet.atMost": "0"}, "raise the one or lower the other"),
        ({"trial.sites": "1"}, "tokensSecret"),
        ({"hub.capabilities": '["SYS_ADMIN"]'}, "capabilities"),
        ({"senders.capabilities": '["SYS_ADMIN"]'}, "capabilities"),
    ],
)
def test_what_can_not_work_is_refused(values: dict[str, str], sentence: str) -> None:
    assert sentence in refusal(values).replace("/", ".")


def test_the_file_for_high_availability_is_valid_and_spreads_its_parts() -> None:
    objects = rendered(None, "--values", str(CHART / "values-ha.yaml"))
    hub = one(objects, *HUB)
    for part in PARTS:
        deployment = one(objects, "Deployment", f"wx-downburst-{part}")
        assert deployment["spec"]["replicas"] == 2
        spread = at(deployment, f"{POD}.topologySpreadConstraints.0.topologyKey")
        assert spread == "kubernetes.io/hostname"
        assert one(objects, "PodDisruptionBudget", f"wx-downburst-{part}")["spec"]["maxUnavailable"] == 1
        for told in (hub, deployment):
            assert {at(told, f"env:{name}") for name in APART_SETTINGS} == {"true"}, "hub and parts agree"
        assert at(deployment, f"{CONTAINER}.resources.requests.cpu") == "100m"


def test_each_part_is_inside_the_hub_unless_it_has_replicas() -> None:
    objects = rendered(ALARMS)
    assert [item["metadata"]["name"] for item in objects if item["kind"] == "Deployment"] == [ALARM_SERVICE[1]]
    for where in (HUB, ALARM_SERVICE):
        told = one(objects, *where)
        apart = [name for name in APART_SETTINGS if at(told, f"env:{name}") == "true"]
        assert apart == ["DOWNBURST_ALARMS__APART"]
        assert at(told, f"{CONTAINER}.resources.requests.cpu") == "500m", "the hub's, unless it has its own"


def test_the_mail_servers_password_is_given_to_the_process_that_notifies_alone() -> None:
    inside, beside = rendered(APART | MAIL), rendered(ALARMS | MAIL | {"scheduler.replicas": "1"})
    assert told_of(inside, SMTP) == [HUB[1]]
    assert told_of(beside, SMTP) == [ALARM_SERVICE[1]]


def test_parts_beside_the_hub_accept_no_connection_and_make_any() -> None:
    every = dict.fromkeys(("latencyService.replicas", "circuitService.replicas", "alarmService.replicas"), "1")
    objects = rendered(APART | every | POLICED)
    policy = one(objects, "NetworkPolicy", "wx-downburst-parts")["spec"]
    assert (policy["policyTypes"], "ingress" in policy) == (["Ingress"], False), "receivers of alarms are anywhere"
    (chosen,) = policy["podSelector"]["matchExpressions"]
    assert set(chosen["values"]) == {*PARTS, "migrate"}
    for part in PARTS:
        labels = one(objects, "Deployment", f"wx-downburst-{part}")["spec"]["template"]["metadata"]["labels"]
        assert labels.items() >= (policy["podSelector"]["matchLabels"] | {chosen["key"]: part}).items()


def test_a_sender_drains_for_a_little_less_than_it_is_given() -> None:
    sender = one(rendered(SENDING | {"senders.stopSeconds": "90"}), *SENDER)
    assert at(sender, "env:DOWNBURST_SENDER__DRAIN_S") == "80"


def test_what_a_pod_ends_with_is_in_its_status() -> None:
    for item in rendered(APART | TRIAL | SENDING) + rendered(SIZED):
        template = pod_template(item)
        for container in template["spec"]["containers"] if template else ():
            assert container["terminationMessagePolicy"] == "FallbackToLogsOnError", item["metadata"]["name"]


def test_the_schema_is_brought_up_to_date_before_an_installation() -> None:
    job = one(rendered(LEDGER), "Job", "wx-downburst-migrate")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert at(job, f"{CONTAINER}.args") == ["downburst", "migrate"]
    assert not [item for item in rendered() if item["kind"] == "Job"], "on a volume the hub does it itself"


def test_only_the_hub_may_leave_the_standard_restricted() -> None:
    circuits = {"hub.capabilities": '["NET_ADMIN"]', "circuitService.replicas": "1"}
    for item in rendered(APART | TRIAL | HOST | circuits):
        template = pod_template(item)
        if template is None or item["metadata"]["name"] == "wx-downburst":
            continue
        assert "hostNetwork" not in template["spec"], item["metadata"]["name"]
        assert template["spec"]["securityContext"]["runAsNonRoot"] is True
        for container in template["spec"]["containers"]:
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_a_scheduler_beside_the_hub_plans_no_groups_that_the_values_forbid() -> None:
    scheduler = one(rendered(APART), *SCHEDULER)
    assert at(scheduler, "env:DOWNBURST_MULTICAST__ENABLED") == "false"


def test_the_defaults_render_as_they_did() -> None:
    golden = Path(__file__).parents[2] / "golden" / "chart" / "defaults.yaml"
    now = sorted(rendered(), key=lambda item: (item["kind"], item["metadata"]["name"]))
    if os.environ.get("DOWNBURST_WRITE_GOLDEN"):
        golden.write_text(yaml.safe_dump_all(now))
    before = list(yaml.safe_load_all(golden.read_text()))
    assert now == before, "if this is meant: DOWNBURST_WRITE_GOLDEN=1 pytest, and read the difference"


def told_of(objects: list[Object], variable: str) -> list[str]:
    """The objects with a container that has this environment variable."""
    pods = [(item["metadata"]["name"], pod_template(item)) for item in objects]
    return [
        name
        for name, template in pods
        for container in (template["spec"]["containers"] if template else ())
        if variable in [each["name"] for each in container.get("env", ())]
    ]


def at(found: Object, path: str) -> Any:
    """The content at a path, whose numbers are list indices; env:NAME is a variable of the first container."""
    if path.startswith("env:"):
        variables = {each["name"]: each.get("value", each.get("valueFrom")) for each in at(found, f"{CONTAINER}.env")}
        return variables[path.removeprefix("env:")]
    inner: Any = found
    for word in path.split("."):
        inner = inner[int(word)] if word.isdecimal() else inner[word]
    return inner
