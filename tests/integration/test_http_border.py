"""A whole hub under too many or too slow requests, or too many connections: it refuses, and serves all others."""

import json
import os
import re
import socket
import stat
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from integration.conftest import RunningHub, Starter, until
from kit.patience import wait_for

MIB = 1024 * 1024


@pytest.fixture
def hub(starter: Starter, monkeypatch: pytest.MonkeyPatch) -> RunningHub:
    for name, value in LIMITS.items():
        monkeypatch.setenv(f"DOWNBURST_LIMITS__{name}", value)
    return starter.hub()


def connected(hub: RunningHub) -> socket.socket:
    host, port = hub.http.split(":")
    return socket.create_connection((host, int(port)), timeout=60)


def answer(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and the rest, read until the hub closes the connection; 0: it closed without an answer."""
    text = b""
    with suppress(ConnectionError):
        while part := connection.recv(65_536):
            text += part
    head, _, body = text.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = dict(re.findall(r"^([^:]+): (.*)$", line, re.MULTILINE)[0] for line in lines[1:])
    return int(lines[0].split()[1]) if lines[0] else 0, headers, body


def resident_bytes(hub: RunningHub) -> int:
    status = Path(f"/proc/{hub.process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) * 1024


def send_much(connection: socket.socket, size: int, *, chunked: bool) -> int:
    """Sends a body whose end need not be read; returns the size that the hub accepted."""
    part, sent = b"x" * 65_536, 0
    with suppress(ConnectionError):
        while sent < size:
            connection.sendall(b"10000\r\n" + part + b"\r\n" if chunked else part)
            sent += len(part)
    return sent


@pytest.mark.parametrize("chunked", [True, pytest.param(False, marks=pytest.mark.all)])
def test_finding_04_a_body_of_600_mb_without_a_login_is_neither_read_nor_kept(hub: RunningHub, chunked: bool) -> None:
    before = resident_bytes(hub)
    with connected(hub) as connection:
        length = "transfer-encoding: chunked" if chunked else f"content-length: {600 * MIB}"
        head = f"POST /v1/session HTTP/1.1\r\nhost: hub\r\ncontent-type: application/json\r\n{length}\r\n\r\n"
        connection.sendall(head.encode())
        sent = send_much(connection, 600 * MIB, chunked=chunked)
        status, headers, body = answer(connection)
    assert sent < 32 * MIB, "the connection was closed while the body came"
    assert resident_bytes(hub) - before < 32 * MIB
    # A reset may overtake the answer where much is on its way.
    if status:
        problem = json.loads(body)
        assert (status, headers["connection"], problem["code"]) == (413, "close", "request-too-large")
        assert problem["limit_bytes"] == 65_536
    # A hub that has just started is not reported healthy before the end of its first round of probes.
    until("good health", lambda: hub.client.get("/healthz").is_success)


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("POST", "/v1/feeds", 401),
        ("PUT", "/v1/feeds/NGRID/products/x", 401),
        pytest.param("POST", "/v1/nothing", 404, marks=pytest.mark.all),
        pytest.param("POST", "/", 405, marks=pytest.mark.all),
        ("GET", "/v1/session", 413),
    ],
)
def test_finding_04_what_is_refused_is_not_read_and_ends_its_connection(
    hub: RunningHub, method: str, path: str, expected: int
) -> None:
    with connected(hub) as connection:
        connection.sendall(f"{method} {path} HTTP/1.1\r\nhost: hub\r\ncontent-length: 99999999\r\n\r\n".encode())
        status, headers, _ = answer(connection)
    assert (status, headers["connection"]) == (expected, "close")


def test_finding_13_headers_and_bodies_that_never_end_are_given_up(hub: RunningHub) -> None:
    unfinished = {
        "nothing at all": b"",
        "half a line": b"GET /v1/ses",
        "headers without an end": b"GET /v1/session HTTP/1.1\r\nhost: hub\r\n",
        "a body without an end": b"POST /v1/session HTTP/1.1\r\nhost: hub\r\ncontent-length: 10\r\n\r\n{",
    }
    for what, text in unfinished.items():
        with connected(hub) as connection:
            connection.sendall(text)
            status, _, body = answer(connection)
        if what == "a body without an end":
            assert (status, json.loads(body)["code"]) == (408, "request-too-slow"), what
        else:
            assert status == 0, what


def test_finding_13_a_trickle_of_headers_is_no_progress(hub: RunningHub) -> None:
    with connected(hub) as connection:
        connection.sendall(b"GET /v1/session HTTP/1.1\r\n")
        for number in range(10_000):
            try:
                connection.sendall(f"x-{number}: y\r\n".encode())
                connection.settimeout(0.05)
                if connection.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("the connection stayed open")


def test_finding_13_who_reads_nothing_of_an_answer_is_let_go(hub: RunningHub) -> None:
    with connected(hub) as connection:
        ends = connection.getpeername()[1], connection.getsockname()[1]
        wait_for("the hub to take the connection", lambda: is_held(*ends))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        # Answers accumulate until the hub cannot write any more.
        asked = b"GET /openapi.json HTTP/1.1\r\nhost: hub\r\n\r\n"
        with suppress(OSError):
            connection.settimeout(1)
            for _ in range(2_000):
                connection.sendall(asked)
        wait_for("the connection is gone at the hub", lambda: not is_held(*ends))


def test_finding_13_one_address_has_so_many_connections_and_no_more(hub: RunningHub) -> None:
    with ExitStack() as stack:
        held = [stack.enter_context(connected(hub)) for _ in range(40)]
        for one in held:
            one.settimeout(0.2)
        refused = [one for one in held if _was_refused(one)]
        # The test's own client uses some of the address's connections as well.
        assert 40 - len(refused) <= int(LIMITS["CONNECTIONS_PER_ADDRESS"])
        assert refused
    until("the address may connect again", lambda: _is_up(hub))


def _was_refused(connection: socket.socket) -> bool:
    try:
        return b" 429 " in connection.recv(400)
    except TimeoutError:
        return False


def _is_up(hub: RunningHub) -> bool:
    with connected(hub) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n\r\n")
        return answer(connection)[0] == 200


def is_held(hub_port: int, client_port: int) -> bool:
    """True if a process holds the hub's end of a connection; the kernel alone may keep it for a while longer."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, *_, inode = line.split()[:10]
        if (_port(local), _port(remote)) == (hub_port, client_port):
            return inode != "0"
    return False


def _port(address: str) -> int:
    """The port of an address as the kernel lists it."""
    return int(address.rpartition(":")[2], 16)


def forwarded(hub: RunningHub) -> str:
    """The source of a request for access that names another sender, as the hub reports it."""
    wanted = {"site": "unl.edu", "organisation": "University", "contact": "ops@unl.edu"}
    headers = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
    hub.ask("POST", "/v1/access-requests", 201, json=wanted, headers=headers)
    (asked,) = hub.ask("GET", "/v1/access-requests")
    peer: str = asked["peer"]
    return peer


def test_finding_12_a_sender_is_who_is_connected_whatever_a_header_says(hub: RunningHub) -> None:
    assert forwarded(hub) == "127.0.0.1"
    until("the log says so", lambda: "name it in the setting access.proxies" in hub.log())


def test_finding_12_a_proxy_that_is_named_is_believed(starter: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOWNBURST_ACCESS__PROXIES", '["127.0.0.0/8"]')
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    assert forwarded(starter.hub()) == "203.0.113.9"


def test_finding_09_nothing_that_a_whole_hub_keeps_is_open_to_others(starter: Starter) -> None:
    before = os.umask(0o022)
    try:
        hub = starter.hub()
    finally:
        os.umask(before)
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    hub.ask("PUT", "/v1/feeds/NGRID/products/x", 201, content=b"x" * 2_000_000)
    kept = [hub.directory, *hub.directory.rglob("*")]
    names = {path.name for path in kept}
    assert {"ledger.sqlite", "operator.token", "hub.lock", "node"} <= names
    is_open = [path for path in kept if not path.is_socket() and stat.S_IMODE(path.lstat().st_mode) & 0o077]
    assert is_open == []


LIMITS = {"HEAD_S": "1", "BODY_S": "1", "STALLED_S": "1", "CONNECTIONS_PER_ADDRESS": "16"}
