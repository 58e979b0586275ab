"""`downburst sender` as its operator runs it, beside a whole hub, and the sites' reports about it."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, Self

import httpx

from kit import running
from kit.node import SiteNode, node_binary
from kit.patience import wait_for
from kit.ports import free_port
from kit.whole_hub import DOWNBURST, WholeHub


class Sender:
    """One sender in a directory of its own; its settings are those of the hub, except for its place."""

    def __init__(
        self,
        directory: Path,
        hub: WholeHub,
        kafka: str,
        *,
        prefix: Sequence[str] = (),
        inside: Callable[[], AbstractContextManager[None]] = nullcontext,
        sites: str = "",
    ) -> None:
        """`prefix`, `inside` and `sites`: its host in a lab, and its address there."""
        self.directory = directory
        self.name = directory.name
        self.http = f"127.0.0.1:{free_port()}"
        self.sites = sites or f"127.0.0.1:{free_port()}"
        self._prefix, self._inside = prefix, inside
        self._settings = _SETTINGS.format(sender=self, node=node_binary(), ledger=hub.ledger_url, kafka=kafka)

    def start(self) -> Self:
        """Starts the process and waits until it is ready."""
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = self.directory / "settings.toml"
        settings.write_text(self._settings)
        with (self.directory / "sender.log").open("ab") as log:
            argv = [*self._prefix, DOWNBURST, "sender", "--settings", str(settings)]
            self.process = subprocess.Popen(argv, stdout=log, stderr=log)
        running.note(self.process)
        wait_for(f"sender {self.name} to be ready", self.is_ready, 60)
        return self

    def is_ready(self) -> bool:
        """True if its readiness probe succeeds."""
        assert self.process.poll() is None, self.log()[-4000:]
        with suppress(httpx.TransportError), self._inside():
            return httpx.get(f"http://{self.http}/health/ready", timeout=5).is_success
        return False

    def kill(self) -> None:
        """Ends the process without warning; its node notices by the end of its input."""
        self.process.kill()
        self.process.wait(timeout=10)

    def kill_all(self) -> None:
        """Ends process and node without warning, as the loss of a machine does."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in map(int, children):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.kill()

    def drain(self, seconds: float = 40.0) -> int:
        """Requests its end; returns the exit code."""
        self.process.terminate()
        return self.process.wait(timeout=seconds)

    def metrics(self) -> dict[str, float]:
        """The values of its metrics."""
        text = httpx.get(f"http://{self.http}/metrics", timeout=5).text
        return {name: float(value) for name, value in re.findall(r"^(\w+) ([\d.]+)$", text, re.MULTILINE)}

    def log(self) -> str:
        """Its log."""
        return (self.directory / "sender.log").read_text(errors="replace")


def nodes_of(site: SiteNode) -> dict[str, list[str]]:
    """The feeds that each connected node serves, by the node's address, as the site reports them."""
    argv = [node_binary(), "site-control", "--dir", str(site.directory), "--json", "status"]
    answer: Any = subprocess.run(argv, capture_output=True, text=True, check=False)
    if answer.returncode:
        return {}
    (hub,) = json.loads(answer.stdout)["hubs"]
    return {node["address"]: node["feeds"] for node in hub["nodes"] if node["connected"]}


def seconds_until(what: str, found: Any, limit_s: float = 60.0) -> float:
    """The time from the call until the condition holds."""
    began = time.monotonic()
    wait_for(what, found, limit_s)
    return time.monotonic() - began


_SETTINGS = """\
data_dir = "{sender.directory}/data"
http = "{sender.http}"
sites = "{sender.sites}"
node = "{node}"
ledger_url = "{ledger}"

[sender]
name = "{sender.name}"

[multicast]
interface = "127.0.0.1"

{kafka}
"""
