"""Runs relays (`downburst-node relay`)."""

import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kit import running
from kit.node import END_S, Prefix, node_binary
from kit.patience import wait_for


@dataclass
class RelayNode:
    """A relay and its log."""

    log_file: Path
    to: Sequence[str]
    listen: str = "127.0.0.1:0"
    prefix: Prefix = ()
    arguments: Sequence[str] = ()
    address: str = ""

    def start(self) -> Self:
        """Starts the process, and waits until it listens; a second start listens at the same address."""
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        argv = [node_binary(), "--log-format", "plain", "relay", "--listen", self.address or self.listen]
        argv += [part for target in self.to for part in ("--to", target)]
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [*self.prefix, *argv, *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        running.note(self.process)
        ready = wait_for("a relay that listens", lambda: self._line("relay is ready") or self._ended())
        self.address = ready.split('address="')[1].split('"')[0]
        return self

    def lines(self, words: str) -> list[str]:
        """The lines of the log that contain these words."""
        return [line for line in self.log_file.read_text().splitlines() if words in line]

    def kill(self) -> None:
        """Ends the process without warning."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=10)

    def stop(self) -> int:
        """Requests the end of the process; returns the exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(timeout=END_S)

    def _line(self, words: str) -> str | None:
        return next(iter(self.lines(words)), None)

    def _ended(self) -> None:
        assert self.process.poll() is None, self.log_file.read_text()
