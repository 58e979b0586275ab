"""Runs many receiving sites of a hub in one process (`downburst-swarm`)."""

import json
import os
import secrets
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Self

from kit import running
from kit.node import HubNode, Line, Prefix
from kit.patience import wait_for
from kit.programs import built


def swarm_binary() -> str:
    """The built swarm: `DOWNBURST_SWARM`, else the workspace's."""
    return os.environ.get("DOWNBURST_SWARM") or str(built("downburst-swarm"))


def enrol(node: HubNode, names: Sequence[str], *subscriptions: Line, file: Path) -> None:
    """Makes sites with equal subscriptions known to the hub, as `enrol_each` does."""
    enrol_each(node, dict.fromkeys(names, subscriptions), file=file)


def enrol_each(node: HubNode, subscriptions: Mapping[str, Sequence[Line]], *, file: Path) -> None:
    """Makes sites known to the hub with credentials that `file` then holds: no site has to show a token."""
    lines = []
    for name, wanted in subscriptions.items():
        secret = secrets.token_hex(16)
        node.sites[name] = list(wanted)
        node.credentials[name] = [sha256(secret.encode()).hexdigest()]
        lines.append(f"{name} {node.ca_sha256} {secret}\n")
    file.write_text("".join(lines))
    node.tell_sites()


@dataclass
class Swarm:
    """A `downburst-swarm` and its output."""

    hub: str
    token_file: Path
    arguments: Sequence[str] = ()
    prefix: Prefix = ()
    binary: str = ""
    """Another build than the tests'."""
    lines: list[Line] = field(default_factory=list)

    def start(self) -> Self:
        """Starts the process."""
        argv = [
            self.binary or swarm_binary(),
            "--hub",
            self.hub,
            "--token-file",
            str(self.token_file),
            "--every",
            "0.2",
        ]
        self.process = subprocess.Popen(
            [*self.prefix, *argv, *self.arguments], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        running.note(self.process)
        return self

    def wait_connected(self, sites: int, seconds: float = 60.0) -> Line:
        """Waits until this number of sites has a session; returns the line that reports it."""
        return wait_for(f"{sites} sites of the swarm", lambda: self._last(connected=sites), seconds)

    def wait_products(self, products: int, seconds: float = 60.0) -> Line:
        """Waits until all sites together have received this number of products."""

        def enough() -> Line | None:
            return next((line for line in self.lines[-1:] if line["products"] >= products), None)

        return wait_for(f"{products} products at the swarm", enough, seconds)

    def stop(self) -> Line:
        """Ends the process; returns the summary, or the last line if it had ended before without one."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=20)
        self._reader.join(timeout=10)
        return self.lines[-1] if self.lines else {}

    def _last(self, **wanted: int) -> Line | None:
        return next(
            (line for line in self.lines[-1:] if all(line[name] == value for name, value in wanted.items())), None
        )

    def _read(self) -> None:
        assert self.process.stdout
        with self.process.stdout as lines:
            for text in lines:
                self.lines.append(json.loads(text))
