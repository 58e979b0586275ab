"""The contract of every fleet: as child processes, and (tests/cluster) as pods on a real API server."""

import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from downburst.fleet.children import ChildFleet, Command
from downburst.foundation.errors import FleetAway
from kit.fleets import FleetContract, Handle, until_ready
from kit.ports import free_port


class Children(Handle):
    """Processes that report readiness, and record a request to drain."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.fleet = ChildFleet(self._command, drain_s=20)

    def named(self) -> set[int]:
        return {int(path.name) for path in self._home.iterdir() if path.name.isdecimal() and _runs(path)}

    def remove_one(self, number: int) -> None:
        os.kill(int((self._home / str(number)).read_text()), signal.SIGKILL)

    def _command(self, number: int) -> Command:
        port_file = self._home / f"port-{number}"
        port = free_port()
        port_file.write_text(str(port))
        argv = (sys.executable, "-c", PROGRAM, str(self._home / str(number)), str(port))
        return Command(argv, {}, f"http://127.0.0.1:{port}/health/ready")


@pytest.fixture
async def handle(tmp_path: Path) -> AsyncIterator[Handle]:
    children = Children(tmp_path)
    yield children
    await children.fleet.close()
    assert children.named() == set(), "child processes end with their fleet"


class TestChildren(FleetContract):
    """The contract, and readiness."""

    async def test_those_that_say_so_are_ready(self, handle: Handle) -> None:
        await until_ready(handle, 2)
        handle.remove_one(0)
        await until_ready(handle, 2)

    async def test_those_beyond_are_asked_to_drain(self, handle: Handle, tmp_path: Path) -> None:
        await until_ready(handle, 2)
        await until_ready(handle, 1)
        await handle.fleet.close()
        assert sorted(path.name for path in drained(tmp_path)) == ["0.drained", "1.drained"]

    async def test_one_that_still_drains_is_followed_and_never_met(self, handle: Handle, tmp_path: Path) -> None:
        await until_ready(handle, 1)
        first, busy = (tmp_path / "0").read_text(), tmp_path / "busy"
        busy.touch()
        await handle.fleet.bring_to(0)
        for _ in range(3):
            assert (await handle.fleet.bring_to(1)).ready == 0
        assert (tmp_path / "0").read_text() == first
        busy.unlink()
        await until_ready(handle, 1)
        assert (tmp_path / "0").read_text() != first

    async def test_a_machine_that_starts_nothing_more_is_away_for_now(self) -> None:
        too_much = {"LARGE": "x" * 1_000_000}
        fleet = ChildFleet(lambda _: Command(("true",), too_much, "http://127.0.0.1:1/"), drain_s=1)
        with pytest.raises(FleetAway, match="can't start more processes"):
            await fleet.bring_to(1)
        await fleet.close()


def drained(home: Path) -> list[Path]:
    return list(home.glob("*.drained"))


def _runs(file: Path) -> bool:
    text = file.read_text()
    if not text:
        return False
    try:
        os.kill(int(text), 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{text}/stat").read_text().rpartition(")")[2][:3]


PROGRAM = """
import http.server, os, pathlib, signal, sys, time
file, port = pathlib.Path(sys.argv[1]), int(sys.argv[2])
class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("content-length", "0"); self.end_headers()
    def log_message(self, *_): pass
def drain(*_):
    while file.with_name("busy").exists(): time.sleep(0.01)
    file.with_suffix(".drained").touch(); os._exit(0)
signal.signal(signal.SIGTERM, drain)
server = http.server.HTTPServer(("127.0.0.1", port), Health)
file.write_text(str(os.getpid()))
server.serve_forever()
"""
