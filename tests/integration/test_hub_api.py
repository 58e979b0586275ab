"""The embedded path with the real node: configured over the api, products in, files out, deaths survived."""

import os
import signal
import socket
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from downburst.foundation.clock import SystemClock
from downburst.foundation.errors import NodeAway
from downburst_worker.node import NodeProcess
from integration.conftest import RunningHub, Starter, until
from kit.node import node_binary
from kit.ports import free_port

IDS = ["SDUS54 KOUN 161540 /pN0RTLX", "a/b/100 %", "Wärme", "empty"]


@pytest.fixture
def hub(starter: Starter) -> RunningHub:
    running = starter.hub()
    running.ask("POST", "/v1/feeds", 201, json={"feed": "IDS|DDPLUS", "class": "observation"})
    return running


def put(hub: RunningHub, product_id: str, content: bytes, expect: int = 201, **headers: str) -> httpx.Response:
    path = f"/v1/feeds/{quote('IDS|DDPLUS', safe='')}/products/{quote(product_id, safe='')}"
    answer = hub.client.put(path, content=content, headers=headers)
    assert answer.status_code == expect, answer.text
    return answer


def test_products_reach_a_site_and_its_receipts_come_back(starter: Starter, hub: RunningHub) -> None:
    hub.ask("POST", "/v1/sites", 201, json={"site": "a.example"})
    hub.ask("POST", "/v1/sites/a.example/subscriptions", 201, json={"feed": "IDS|DDPLUS"})
    token = hub.ask("POST", "/v1/sites/a.example/tokens", 201)["token"]
    starter.receiver(hub, "a.example", token)
    until("the site connects", lambda: overview_site(hub, "a.example")["connected"])
    sent = [b"" if name == "empty" else name.encode() * 1000 for name in IDS]
    for name, content in zip(IDS, sent, strict=True):
        put(hub, name, content)
    until("all files are there", lambda: len(starter.received("a.example")) == len(IDS))
    assert sorted(starter.received("a.example").values()) == sorted(sent)
    until("receipts are counted", lambda: overview_site(hub, "a.example")["stored"] == len(IDS))
    figures = until("latency is known", lambda: hub.ask("GET", "/v1/latency?feed=IDS%7CDDPLUS"))
    assert {row["kind"] for row in figures} >= {"end-to-end"}
    assert hub.ask("GET", "/v1/plans")[0]["transport"] == "unicast"
    until("egress is booked", lambda: hub.ask("GET", "/v1/totals")["egress_bytes"] >= sum(map(len, sent)))


def test_a_pattern_that_can_not_be_read_is_refused_by_the_node(hub: RunningHub) -> None:
    hub.ask("POST", "/v1/sites", 201, json={"site": "a.example"})
    body = {"feed": "IDS|DDPLUS", "pattern": "^SDUS(5"}
    problem = hub.ask("POST", "/v1/sites/a.example/subscriptions", 422, json=body)
    assert problem["code"] == "bad-pattern"
    assert isinstance(problem["position"], int)


def test_a_used_token_is_refused_at_the_second_receiver(starter: Starter, hub: RunningHub) -> None:
    hub.ask("POST", "/v1/sites", 201, json={"site": "a.example"})
    token = hub.ask("POST", "/v1/sites/a.example/tokens", 201)["token"]
    first = starter.receiver(hub, "a.example", token)
    until("the site connects", lambda: overview_site(hub, "a.example")["connected"])
    assert first.poll() is None
    second = starter.receiver(hub, "thief", token)
    assert second.wait(30) == 3
    assert "used by another receiver" in (starter.home / "thief.log").read_text()


def test_a_duplicate_and_a_wrong_digest_are_told(hub: RunningHub) -> None:
    first = put(hub, "a", b"text").json()
    assert put(hub, "a", b"text", 200).json()["duplicate_of"] == first["sequence"]
    assert put(hub, "b", b"text").json()["sequence"] > first["sequence"]
    wrong = put(hub, "c", b"text", 422, **{"Downburst-BLAKE3": "0" * 64}).json()
    assert wrong["code"] == "digest-mismatch"
    put(hub, "c", b"text")


def test_an_upload_that_breaks_off_stores_nothing(hub: RunningHub) -> None:
    host, port = hub.http.split(":")
    with socket.create_connection((host, int(port))) as line:
        line.sendall(
            b"PUT /v1/feeds/IDS%7CDDPLUS/products/cut HTTP/1.1\r\nHost: hub\r\nContent-Length: 900000\r\n"
            + f"Authorization: {hub.client.headers['Authorization']}\r\n\r\n".encode()
            + b"x" * 400_000
        )
        until("the upload has begun", lambda: list((hub.directory / "spool").iterdir()))
    until("nothing is left of it", lambda: not list((hub.directory / "spool").iterdir()))
    assert put(hub, "cut", b"x" * 900_000).json()["size"] == 900_000


def test_a_hub_that_is_killed_loses_nothing_and_goes_on_above(starter: Starter, hub: RunningHub) -> None:
    stored = [put(hub, f"before {number}", b"x" * number).json()["sequence"] for number in range(20)]
    node = hub.node_pid()
    hub.stop(signal.SIGKILL)
    until("the node ends with its hub", lambda: not Path(f"/proc/{node}").exists())
    again = starter.hub(http=hub.http, sites=hub.sites)
    assert put(again, "before 3", b"xxx", 200).json()["duplicate_of"] == stored[3]
    assert put(again, "after", b"x").json()["sequence"] > max(stored)


def test_a_node_that_is_killed_is_started_again_and_said(hub: RunningHub) -> None:
    stored = put(hub, "before", b"x").json()["sequence"]
    os.kill(hub.node_pid(), signal.SIGKILL)
    until("the node is back", lambda: restarts(hub) == 1 and hub.client.get("/healthz").is_success)
    assert put(hub, "before", b"x", 200).json()["duplicate_of"] == stored
    assert any("signal 9" in fault["sentence"] for fault in hub.ask("GET", "/v1/overview")["faults"])


async def test_a_request_that_overtakes_the_first_job_of_a_restarted_node_is_no_fault_of_its_sender() -> None:
    async def overtaken() -> None:
        with pytest.raises(NodeAway, match="try again in some seconds"):
            await node.request("status")

    async def heard(_: object) -> None:
        return

    node = NodeProcess(
        [node_binary(), "hub"], clock=SystemClock(), on_ready=overtaken, on_event=heard, on_death=heard
    )
    try:
        await node.start()
    finally:
        await node.stop()


def test_a_hub_stops_cleanly_with_a_page_open(hub: RunningHub) -> None:
    node = hub.node_pid()
    with hub.client.stream("GET", "/v1/events") as page:
        lines = page.iter_lines()
        assert next(lines) == "event: overview"
        assert hub.stop() == 0
    assert not Path(f"/proc/{node}").exists()


@pytest.mark.all
def test_two_hubs_do_not_share_a_directory_or_a_port(hub: RunningHub, tmp_path: Path) -> None:
    def refused(*argv: str) -> str:
        ended = hub.command("hub", *argv)
        assert ended.returncode == 1
        assert len(ended.stderr.strip().splitlines()) == 1, ended.stderr
        return ended.stderr

    free = f"127.0.0.1:{free_port()}"
    assert "another hub" in refused("--data-dir", str(hub.directory), "--http", free)
    assert "can't listen on" in refused("--data-dir", str(tmp_path / "other"), "--http", hub.http)
    sites_taken = refused("--data-dir", str(tmp_path / "third"), "--http", free, "--sites", hub.sites)
    assert hub.sites in sites_taken


def test_the_command_line_does_what_the_api_does(hub: RunningHub, tmp_path: Path) -> None:
    product = tmp_path / "product"
    product.write_bytes(os.urandom(300_000))
    sent = hub.command("put", "IDS|DDPLUS", "a/b %", str(product))
    assert (sent.returncode, sent.stderr) == (0, "")
    assert "stored as IDS|DDPLUS" in sent.stdout
    for argv, sentence in (
        (("put", "IDS|DDPLUS", "../x", str(product)), "'..'"),
        (("put", "IDS", "x", str(product)), "no feed 'IDS'"),
        (("feeds", "add", "IDS|DDPLUS"), "already exists"),
        (("sites", "show", "none"), "no site 'none'"),
    ):
        refused = hub.command(*argv)
        assert refused.returncode == 2
        assert sentence in refused.stderr
    assert hub.command("status", "--json").returncode == 0


def overview_site(hub: RunningHub, name: str) -> dict[str, object]:
    sites = {site["site"]: site for site in hub.ask("GET", "/v1/overview")["sites"]}
    found: dict[str, object] = sites[name]
    return found


def restarts(hub: RunningHub) -> int:
    return int(hub.ask("GET", "/v1/status")["node"]["restarts"])


def test_a_credential_that_has_expired_cuts_its_site_off(starter: Starter, hub: RunningHub) -> None:
    hub.ask("POST", "/v1/sites", 201, json={"site": "a.example"})
    token = hub.ask("POST", "/v1/sites/a.example/tokens", 201, json={"credential_days": 6 / 86_400})["token"]
    receiver = starter.receiver(hub, "a.example", token)
    until("the receiver is let in", lambda: overview_site(hub, "a.example")["connected"])
    # While stopped, it cannot replace its credential.
    receiver.send_signal(signal.SIGSTOP)
    until("the session ends", lambda: not overview_site(hub, "a.example")["connected"])
    receiver.send_signal(signal.SIGCONT)
    assert receiver.wait(30) == 3, "a session that is open when the credential ends is ended"
    assert "has expired; ask the hub's operator for a new token" in (starter.home / "a.example.log").read_text()
    again = starter.receiver(hub, "a.example", token)
    assert again.wait(30) == 3, "and so is one that comes later"
    renewed = hub.ask("POST", "/v1/sites/a.example/tokens", 201)["token"]
    starter.receiver(hub, "a.example", renewed)
    until("a new token lets the same receiver in", lambda: overview_site(hub, "a.example")["connected"])
