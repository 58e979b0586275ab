"""A whole hub as its users run it, with the real node; a missing node fails the tests."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from downburst.host.local_token import authorization
from kit.node import node_binary
from kit.patience import wait_for
from kit.ports import free_port

T = TypeVar("T")
PATIENCE_S = 60.0


def until(what: str, probe: Callable[[], T | None], patience_s: float = PATIENCE_S) -> T:
    """The first true thing that `probe` returns."""
    return wait_for(f"progress ({what})", probe, patience_s)


@dataclass
class RunningHub:
    directory: Path
    http: str
    sites: str
    process: subprocess.Popen[bytes]
    client: httpx.Client

    def ask(self, method: str, path: str, expect: int = 200, **request: Any) -> Any:
        answer = self.client.request(method, path, **request)
        assert answer.status_code == expect, f"{method} {path}: {answer.status_code} {answer.text}\n{self.log()}"
        return answer.json() if answer.content else None

    def command(self, *argv: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "DOWNBURST_HUB": f"http://{self.http}"}
        return subprocess.run(
            [DOWNBURST, *argv], capture_output=True, text=True, env=environment, timeout=120, check=False
        )

    def log(self) -> str:
        return (self.directory.parent / "hub.log").read_text(errors="replace")[-4000:]

    def node_pid(self) -> int:
        """The hub's node: the child that was started as `downburst-node hub`."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        named = [int(pid) for pid in children if b"hub" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]
        assert len(named) == 1, children
        return named[0]

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


class Starter:
    """Starts hubs and receivers, and ends the remaining ones."""

    def __init__(self, home: Path, stack: ExitStack) -> None:
        self.home = home
        self._stack = stack

    def hub(
        self,
        *,
        http: str | None = None,
        sites: str | None = None,
        data_dir: Path | None = None,
        command: Sequence[str] = (),
        arguments: Sequence[str] = (),
    ) -> RunningHub:
        http, sites = http or f"127.0.0.1:{free_port()}", sites or f"127.0.0.1:{free_port()}"
        directory = data_dir or self.home / "hub"
        argv = [*(command or [DOWNBURST]), "hub", "--data-dir", str(directory), "--http", http, "--sites", sites]
        argv += arguments
        process = self._start("hub", argv)
        client = self._stack.enter_context(httpx.Client(base_url=f"http://{http}", timeout=60))
        hub = RunningHub(directory, http, sites, process, client)
        until(f"the hub is up\n{hub.log()}", lambda: _up(client, hub))
        # Found in the same way as by commands: the data directory may be visible only to the hub.
        client.headers.update(authorization(f"http://{http}"))
        return hub

    def receiver(
        self,
        hub: RunningHub,
        site: str,
        token: str,
        *,
        address: str | None = None,
        arguments: Sequence[str] = (),
        prefix: Sequence[str] = (),
    ) -> subprocess.Popen[bytes]:
        """A receiving site that reaches the hub at this address, with more arguments, begun by `prefix`."""
        directory = self.home / "sites" / site
        directory.mkdir(parents=True, exist_ok=True)
        file = directory / "token"
        file.write_text(token)
        argv = ["receive", "--hub", address or hub.sites, "--token-file", str(file), "--dir", str(directory)]
        return self._start(site, [*prefix, node_binary(), *argv, *arguments])

    def node(self, *argv: str) -> None:
        """Runs a tool of the node, which must succeed."""
        subprocess.run([node_binary(), *argv], check=True, timeout=60)

    def received(self, site: str) -> dict[str, bytes]:
        """The files that the site's consumer sees, by path."""
        directory = self.home / "sites" / site / "received"
        return {
            str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
        }

    def _start(self, name: str, argv: list[str]) -> subprocess.Popen[bytes]:
        log = self._stack.enter_context((self.home / f"{name}.log").open("ab"))
        environment = {**os.environ, "DOWNBURST_NODE": node_binary()}
        process = subprocess.Popen(argv, stdout=log, stderr=log, env=environment)
        self._stack.callback(_end, process)
        return process


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[Starter]:
    with ExitStack() as stack:
        yield Starter(tmp_path, stack)


def _up(client: httpx.Client, hub: RunningHub) -> bool:
    assert hub.process.poll() is None, f"the hub ended with {hub.process.returncode}\n{hub.log()}"
    try:
        return client.get("/livez").is_success
    except httpx.TransportError:
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


DOWNBURST = str(Path(sys.executable).with_name("downburst"))
