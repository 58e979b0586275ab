"""A hub as its operator runs it, `downburst hub` with its node, for tests that kill either of them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx

from kit import running
from kit.node import node_binary
from kit.patience import wait_for
from kit.ports import free_port

DOWNBURST = str(Path(sys.executable).with_name("downburst"))


@dataclass
class WholeHub:
    """`downburst hub` in a directory of its own. A test that kills it starts it again, as an init system does."""

    directory: Path
    multicast_network: str = "239.78.0.0/24"
    http: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    sites: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    ledger_url: str = ""
    top: str = ""
    """Further settings outside of sections."""
    more: str = ""
    """Further sections of its settings."""
    arguments: Sequence[str] = ()
    """The arguments of its command, beside its settings."""
    prefix: Sequence[str] = ()
    inside: Callable[[], AbstractContextManager[None]] = nullcontext
    """A context in which its addresses can be reached, if it runs in a host of a lab."""

    def start(self, seconds: float = 60.0) -> Self:
        """Starts the process until it stays: remains of an earlier one need a moment to release ports and logs."""
        settings = self.write_settings()
        give_up = time.monotonic() + seconds
        while not self._comes_up(settings):
            assert time.monotonic() < give_up, f"the hub does not start again\n{self.log()[-4000:]}"
        return self

    def write_settings(self) -> Path:
        """Writes the settings file of its process."""
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = self.directory / "settings.toml"
        data_dir = self.directory / "data"
        settings.write_text(
            _SETTINGS.format(hub=self, data_dir=data_dir, node=node_binary(), network=self.multicast_network)
        )
        return settings

    def ask(self, method: str, path: str, **request: Any) -> Any:
        """Sends a request to the api; fails unless it succeeds."""
        answer = self.answer(method, path, **request)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}\n{self.log()[-4000:]}"
        return answer.json() if answer.content else None

    def answer(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Sends a request to the api; a refusal is an answer as well."""
        with self.inside():
            return httpx.request(
                method, f"http://{self.http}{path}", timeout=60, verify=False, headers=self.authorization, **request
            )

    @property
    def authorization(self) -> dict[str, str]:
        """The authorization that its own user's commands present."""
        return {"Authorization": f"Bearer {(self.directory / 'data' / 'operator.token').read_text().strip()}"}

    def is_well(self) -> bool:
        """True if the api reports that the hub is healthy."""
        with suppress(httpx.TransportError), self.inside():
            return httpx.get(f"http://{self.http}/healthz", timeout=5).is_success
        return False

    def node_pids(self) -> list[int]:
        """The node, if it runs at the moment."""
        pids = []
        with suppress(OSError):
            task = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
            for pid in map(int, task.read_text().split()):
                with suppress(OSError):
                    if b"hub" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                        pids.append(pid)
        return pids

    def kill_node(self) -> bool:
        """Kills the node; its agent starts it again. False if it was down."""
        pids = self.node_pids()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(pids)

    def kill_api(self) -> None:
        """Kills the Python process; the node notices by the end of its input."""
        self.process.kill()
        self.process.wait(timeout=10)

    def stop(self) -> int:
        """Requests the end of the hub; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)

    def log(self) -> str:
        """Its log."""
        path = self.directory / "hub.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def _comes_up(self, settings: Path) -> bool:
        with (self.directory / "hub.log").open("ab") as log:
            argv = [*self.prefix, DOWNBURST, "hub", "--settings", str(settings), *self.arguments]
            self.process = subprocess.Popen(argv, stdout=log, stderr=log)
        running.note(self.process)
        wait_for("a hub that is up or has ended", lambda: self.is_well() or self.process.poll() is not None, 60)
        return self.process.poll() is None


_SETTINGS = """\
data_dir = "{data_dir}"
http = "{hub.http}"
sites = "{hub.sites}"
node = "{node}"
ledger_url = "{hub.ledger_url}"
{hub.top}

[multicast]
interface = "127.0.0.1"
network = "{network}"

{hub.more}
"""
