"""Consumers of a peer: one process per site, which stand ready, begin at a word and print an account in JSON."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from bench.counters import cpu_s
from bench.delivery import HUB
from kit.namespaces import Lab

Account = dict[str, Any]


@dataclass(frozen=True)
class Consumed:
    """What the consumers say, and what they cost."""

    accounts: list[Account]
    cpu_s: float

    @property
    def began_us(self) -> float:
        """When the first began."""
        return float(min(account["began_us"] for account in self.accounts))

    @property
    def ended_us(self) -> float:
        """When the last had its last message."""
        return float(max(account["ended_us"] for account in self.accounts))

    def needs(self, messages: int) -> None:
        """Fail unless every consumer got so many."""
        if wrong := [account for account in self.accounts if account["messages"] != messages]:
            raise RuntimeError(f"{len(wrong)} consumers did not get {messages} messages: {wrong}")


class Consumers:
    """One per site of the lab."""

    def __init__(self, lab: Lab, argv: Sequence[str]) -> None:
        """Start them all and wait until they stand."""
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
        """Give the word to all."""
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
