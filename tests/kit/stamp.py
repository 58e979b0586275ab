"""Reflectors and senders of STAMP, as `downburst-node stamp` runs them."""

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from kit.programs import built


class Inside(Protocol):
    """Turns a command into one that runs at a place, such as a host of a lab."""

    def __call__(self, argv: Sequence[str]) -> Sequence[str]:
        """The command line."""


def here(argv: Sequence[str]) -> Sequence[str]:
    """Runs a command in this namespace."""
    return argv


@contextmanager
def reflector(listen: str, *options: object, inside: Inside = here) -> Iterator[str]:
    """A running reflector; yields its address."""
    argv = [str(built("downburst-node")), "--log-format", "plain", "stamp", "reflect", "--listen", listen]
    command = inside([*argv, *map(str, options)])
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        try:
            line = running.stderr.readline()
            found = re.search(r"address=(\S+)", line)
            assert found, line
            yield found.group(1)
        finally:
            running.terminate()
            running.wait(timeout=30)


def sent(to: str, *options: object, inside: Inside = here, code: int = 0) -> dict[str, Any]:
    """The report of a run of requests."""
    argv = [str(built("downburst-node")), "stamp", "send", "--to", to, "--json", *map(str, options)]
    done = subprocess.run(list(inside(argv)), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report
