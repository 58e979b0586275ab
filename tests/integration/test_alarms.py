"""Alarms of a whole hub: a webhook is notified of a dead site and a stopped source, and of their end."""

import json
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from integration.conftest import RunningHub, Starter, until


class Hook:
    """A webhook on this machine, and its received notices."""

    def __init__(self) -> None:
        told = self.told = list[dict[str, Any]]()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def heard(self, kind: str, state: str) -> list[dict[str, Any]]:
        return [one for one in self.told if (one["kind"], one["state"]) == (kind, state)]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def hook() -> Iterator[Hook]:
    opened = Hook()
    yield opened
    opened.close()


def has_counted(hub: RunningHub, products: int) -> bool:
    return bool(hub.ask("GET", "/v1/overview")["feeds"][0]["products"] >= products)


@pytest.mark.all
def test_a_site_that_dies_and_a_source_that_stops_are_told_once(
    starter: Starter, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("SITE_DOWN_S", "2"), ("LOOK_S", "0.5"), ("END_AFTER_S", "1"), ("SILENCE_PAUSES", "5")):
        monkeypatch.setenv(f"DOWNBURST_ALARMS__{name}", value)
    hub = starter.hub()
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    hub.ask("POST", "/v1/sites", 201, json={"site": "near.example"})
    hub.ask("POST", "/v1/sites/near.example/subscriptions", 201, json={"feed": "NGRID"})
    assert hub.command("alarms", "tell", "hook", "--webhook", hook.address).returncode == 0
    assert hub.command("alarms", "test", "hook").returncode == 0
    assert "no action is needed" in hook.told.pop()["sentence"]
    token = hub.ask("POST", "/v1/sites/near.example/tokens", 201)["token"]
    receiver = starter.receiver(hub, "near.example", token)
    until("the site is connected", lambda: hub.ask("GET", "/v1/overview")["sites"][0]["connected"])

    receiver.kill()
    receiver.wait(10)
    (down,) = until("its death is told", lambda: hook.heard("site-down", "firing"))
    assert down["site"] == "near.example"
    starter.receiver(hub, "near.example", token)
    until("its return is told", lambda: hook.heard("site-down", "ended"))
    assert (len(hook.heard("site-down", "firing")), len(hook.heard("site-down", "ended"))) == (1, 1)

    for number in range(7):
        hub.ask("PUT", f"/v1/feeds/NGRID/products/{number}", 201, content=str(number).encode())
        until("the second of its arrival is over", partial(has_counted, hub, number + 1))
    (silent,) = until("the silence is told", lambda: hook.heard("silence", "firing"))
    assert (silent["feed"], "no product has come into NGRID" in silent["sentence"]) == ("NGRID", True)
    listed = hub.command("alarms", "list", "--json")
    assert [one["kind"] for one in json.loads(listed.stdout)] == ["silence"]


@pytest.mark.all
def test_linked_files_that_left_a_sites_log_are_an_alarm_until_they_are_removed(
    starter: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The free space is less than a thousand million times the size of these files on any machine.
    for name, value in (("LINKED_FREE_SHARE", "1e9"), ("LOOK_S", "0.5"), ("END_AFTER_S", "1")):
        monkeypatch.setenv(f"DOWNBURST_ALARMS__{name}", value)
    hub = starter.hub()
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    hub.ask("POST", "/v1/sites", 201, json={"site": "near.example"})
    hub.ask("POST", "/v1/sites/near.example/subscriptions", 201, json={"feed": "NGRID"})
    token = hub.ask("POST", "/v1/sites/near.example/tokens", 201)["token"]
    starter.receiver(hub, "near.example", token, arguments=("--files", "link", "--retention-bytes", "1000000"))
    until("the site is connected", lambda: hub.ask("GET", "/v1/overview")["sites"][0]["connected"])
    for number in range(20):
        hub.ask("PUT", f"/v1/feeds/NGRID/products/{number}", 201, content=bytes([number]) * 200_000)
    until("the site has all files", lambda: len(starter.received("near.example")) == 20)

    alarm = until("the site's log is cut, and the alarm begins", partial(linked_files, hub))
    assert (alarm["site"], alarm["severity"]) == ("near.example", "warning")
    assert " MB of products that left its log" in alarm["sentence"]
    shutil.rmtree(starter.home / "sites" / "near.example" / "received" / "NGRID")
    until("the alarm ends", lambda: linked_files(hub) is None)
    assert hub.ask("GET", "/v1/overview")["sites"][0]["connected"]


def linked_files(hub: RunningHub) -> dict[str, Any] | None:
    """The open alarm."""
    listed: list[dict[str, Any]] = json.loads(hub.command("alarms", "list", "--json").stdout)
    return next((one for one in listed if one["kind"] == "linked-files"), None)
