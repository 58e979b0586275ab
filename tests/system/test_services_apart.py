"""Circuit and alarm service beside a hub, two of each, over a real PostgreSQL and a real Kafka, and killed."""

import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from downburst.ledger import Ledger
from kit.kafka import Kafka
from kit.patience import wait_for
from kit.postgres import Postgres
from kit.whole_hub import WholeHub
from system.test_parts_apart import Apart

pytestmark = [pytest.mark.system]


@pytest.fixture
def hub(tmp_path: Path, server: Postgres, broker: Kafka) -> WholeHub:
    more = (
        f'[kafka]\nservers = "{broker.address}"\nprefix = "{tmp_path.name}"\n[circuits]\napart = true\n'
        "[alarms]\napart = true\nlook_s = 0.5\nend_after_s = 1\n"
    )
    return WholeHub(tmp_path / "hub", ledger_url=server.url(server.database()), more=more).start()


class Heard(BaseHTTPRequestHandler):
    """A receiver of webhooks."""

    told: list[dict[str, Any]]

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["content-length"]))
        self.told.append(json.loads(content))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def receiver() -> Iterator[HTTPServer]:
    Heard.told = []
    listening = HTTPServer(("127.0.0.1", 0), Heard)
    thread = Thread(target=listening.serve_forever)
    thread.start()
    yield listening
    listening.shutdown()
    thread.join()
    listening.server_close()


def two(hub: WholeHub, command: str) -> tuple[Apart, Apart]:
    """The active one and the standby."""
    both = [Apart(hub, command, f"{command}-{number}") for number in (1, 2)]
    role = command.replace("-", " ")
    wait_for("one to be at work", lambda: any(one.says(f"at work as {role}") for one in both), 60)
    wait_for("one to stand by", lambda: any(one.says("this one stands by") for one in both), 60)
    first, second = sorted(both, key=lambda one: one.says("stands by"))
    return first, second


def failing(hub: WholeHub) -> dict[str, str]:
    """The failing probes."""
    found = hub.answer("GET", "/healthz").json().get("probes", {})
    return {name: fault for name, fault in found.items() if fault != "ok"}


def faults(hub: WholeHub) -> str:
    """The faults that the page shows."""
    return "\n".join(fault["sentence"] for fault in hub.ask("GET", "/v1/overview")["faults"])


def silent(url: str) -> set[str]:
    """The parts that alarms report as silent, with or without a hub."""
    ledger = Ledger.look_into(url)
    try:
        with ledger.transaction(writes=False) as tx:
            return {alarm.subject for alarm in tx.alerting.alarms.open() if alarm.kind == "part-silent"}
    finally:
        ledger.close()


@pytest.mark.nightly
def test_two_circuit_services_beside_a_hub(hub: WholeHub) -> None:
    first, second = two(hub, "circuit-service")
    alarms = Apart(hub, "alarm-service", "alarms")
    number = failing_circuit(hub)
    assert hub.answer("POST", "/v1/circuits", json=WISH).status_code == 200
    refused = hub.answer("POST", "/v1/circuits", json=WISH | {"request_id": "second"})
    assert (refused.status_code, refused.json()["circuits"][0]["circuit"]) == (409, number)
    assert hub.ask("GET", f"/v1/circuits/{number}")["reason"]

    first.process.kill()
    killed = time.monotonic()
    wait_for("the other one at work", lambda: second.says("at work as circuit service"), 60)
    wait_for("its answer", lambda: hub.answer("POST", "/v1/circuits", json=WISH).status_code == 200, 60)
    print(f"the other circuit service answered {time.monotonic() - killed:.1f} s after the first was killed")
    hub.kill_api()
    hub.start()
    wait_for("the hub's node again", lambda: "circuit" not in str(failing(hub)), 60)
    assert hub.ask("DELETE", f"/v1/circuits/{number}")["done"]

    second.process.kill()
    asked = time.monotonic()
    away = hub.answer("POST", "/v1/circuits", json=WISH | {"request_id": "third"})
    assert (away.status_code, away.json()["code"]) == (503, "part-away")
    print(f"a request without a circuit service was refused after {time.monotonic() - asked:.1f} s")
    wait_for("the probe to fail", lambda: "circuit-service" in failing(hub), 60)
    wait_for("the fault", lambda: "the circuit service gives no sign of life" in faults(hub), 60)
    wait_for("the alarm", lambda: "circuit service" in silent(hub.ledger_url), 60)
    assert "no sign of life" in hub.ask("GET", "/v1/status")["probes"]["circuit-service"]
    third = Apart(hub, "circuit-service", "third")
    wait_for("all well again", hub.is_well, 60)
    wait_for("the alarm's end", lambda: silent(hub.ledger_url) == set(), 60)
    assert hub.ask("POST", "/v1/circuits", json=WISH | {"request_id": "third"})["circuit"] > number
    for part in (third, alarms):
        part.process.terminate()
        assert part.process.wait(30) == 0
    assert hub.stop() == 0


@pytest.mark.nightly
def test_two_alarm_services_beside_a_hub(hub: WholeHub, receiver: HTTPServer) -> None:
    first, second = two(hub, "alarm-service")
    circuits = Apart(hub, "circuit-service", "circuits")
    address = f"http://127.0.0.1:{receiver.server_port}/hook"
    hub.ask("POST", "/v1/alarm-receivers", json={"receiver": "ops", "kind": "webhook", "address": address})
    wait_for("an answer", lambda: hub.answer("POST", "/v1/alarm-receivers/ops/test").is_success, 60)
    assert [one["kind"] for one in Heard.told] == ["site-down"], "the test says that it is one"
    Heard.told.clear()
    number = failing_circuit(hub)
    wait_for("the alarm", lambda: "circuit" in open_kinds(hub), 60)
    wait_for("the notice", lambda: told("circuit") == 1, 60)

    first.process.kill()
    killed = time.monotonic()
    wait_for("the other one at work", lambda: second.says("at work as alarm service"), 60)
    hub.ask("DELETE", f"/v1/circuits/{number}")
    wait_for("the alarm's end", lambda: "circuit" not in open_kinds(hub), 60)
    print(f"the other alarm service ended an alarm {time.monotonic() - killed:.1f} s after the first was killed")
    wait_for("the notice of its end", lambda: told("circuit") == 2, 60)

    hub.kill_api()
    wait_for("the alarm of a silent hub", lambda: "hub" in silent(hub.ledger_url), 120)
    wait_for("its notice, without a hub", lambda: told("part-silent") == 1, 60)
    hub.start()
    wait_for("the end of that alarm", lambda: silent(hub.ledger_url) == set(), 60)

    second.process.kill()
    wait_for("the probe to fail", lambda: "alarm-service" in failing(hub), 60)
    wait_for("the fault", lambda: "the alarm service gives no sign of life" in faults(hub), 60)
    tried = hub.answer("POST", "/v1/alarm-receivers/ops/test")
    assert (tried.status_code, tried.json()["code"]) == (503, "part-away")
    third = Apart(hub, "alarm-service", "third")
    wait_for("all well again", hub.is_well, 60)
    for part in (third, circuits):
        part.process.terminate()
        assert part.process.wait(30) == 0
    assert hub.stop() == 0


def failing_circuit(hub: WholeHub) -> int:
    """A circuit that the hub's node fails to set up: the far end's receiver is away."""
    wait_for("the service's answers", lambda: hub.answer("DELETE", "/v1/ports/none").status_code == 404, 60)
    hub.ask("POST", "/v1/sites", json={"site": "a.example"})
    for port in PORTS:
        hub.ask("POST", "/v1/ports", json=port)
    number = int(hub.ask("POST", "/v1/circuits", json=WISH)["circuit"])
    wait_for("the node's answer", lambda: hub.ask("GET", f"/v1/circuits/{number}")["state"] == "failed", 60)
    return number


def open_kinds(hub: WholeHub) -> list[str]:
    return [alarm["kind"] for alarm in hub.ask("GET", "/v1/alarms")["items"]]


def told(kind: str) -> int:
    """The number of received notices of a kind, of a beginning or an end."""
    return sum(one["kind"] == kind for one in Heard.told)


TAGS = {"first_vlan": 100, "last_vlan": 199}
PORTS = (
    {"port": "hub-port", "rate_bps": 100_000_000, "interface": "lo", "underlay": "127.0.0.1", **TAGS},
    {
        "port": "far-port",
        "rate_bps": 100_000_000,
        "interface": "lo",
        "underlay": "127.0.0.2",
        "site": "a.example",
        **TAGS,
    },
)
WISH = {"sites": [{"site": "a.example"}], "rate_out_bps": 60_000_000, "request_id": "first", "end": "+1h"}
