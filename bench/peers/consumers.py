"""Consumers of a peer: one process per site; it reports readiness, begins on a signal and prints JSON."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from bench.harness.counters import cpu_s
from bench.harness.delivery import HUB
from kit.namespaces import Lab

Account = dict[str, Any]


@dataclass(frozen=True)
class Consumed:
    """The accounts of the consumers, and their processor time."""

    accounts: list[Account]
    cpu_s: float

    @property
    def began_us(self) -> float:
        """The time at which the first began."""
        return float(min(account["began_us"] for account in self.accounts))

    @property
    def ended_us(self) -> float:
        """The time at which the last one had its last message."""
        return float(max(account["ended_us"] for account in self.accounts))

    def needs(self, messages: int) -> None:
        """Fail unless every consumer got this number of messages."""
        if wrong := [account for account in self.accounts if account["messages"] != messages]:
            raise RuntimeError(f"{len(wrong)} consumers did not get {messages} messages: {wrong}")


class Consumers:
    """One per site of the lab."""

    def __init__(self, lab: Lab, argv: Sequence[str]) -> None:
        """Start them all and wait until they are ready."""
        sites = [host for host in lab.hosts if host != HUB]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._processes = [lab.run(site, argv, **pipes) for site in sites]
        for process in self._processes:
            if _line(process) != "ready":
                self.kill()
                raise RuntimeError(f"{argv} was not ready")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def go(self) -> None:
        """Send the signal to all."""
        for process in self._processes:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()

    def wait(self) -> Consumed:
        """Wait until all have ended."""
        accounts = [json.loads(_line(process) or "null") for process in self._processes]
        for process in self._processes:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        spent_s = cpu_s(process.pid for process in self._processes)
        if None in accounts:
            raise RuntimeError("a consumer ended without an account; its reason is on stderr")
        return Consumed(accounts, spent_s)

    def kill(self) -> None:
        """End those that still run."""
        for process in self._processes:
            process.kill()
            process.communicate()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()
