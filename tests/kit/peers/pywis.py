"""pywis-pubsub as a judge and as a subscriber."""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Pywis:
    """pywis-pubsub, with its schemas in a home of its own."""

    def __init__(self, program: Path, home: Path) -> None:
        self._program, self._environment = str(program), os.environ | {"HOME": str(home)}
        self._environment.pop("PYTHONPATH", None)

    def judge(self, notification: Path) -> dict[str, int]:
        """The summary of its executable test suite."""
        argv = [self._program, "ets", "validate", str(notification)]
        found = subprocess.run(argv, env=self._environment, capture_output=True, text=True, timeout=60, check=False)
        report = json.loads(found.stdout[found.stdout.index("{") :])
        summary: dict[str, int] = report["ets-report"]["summary"]
        return summary

    def verdict(self, notification: Path) -> str:
        """Its summary in a few words."""
        try:
            summary = self.judge(notification)
        except ValueError:
            return "no report"
        return f"{summary['FAILED']} failed" if summary["FAILED"] else "passed"

    @contextmanager
    def subscribed(self, settings: Path, log: Path) -> Iterator[None]:
        """Its subscriber, which stores what is announced."""
        argv = [self._program, "subscribe", "-c", str(settings), "-d", "-v", "DEBUG"]
        with log.open("wb") as out:
            process = subprocess.Popen(argv, env=self._environment, stdout=out, stderr=out)
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=30)


def digests(directory: Path) -> list[str]:
    """The SHA-256 of all files below a directory, sorted."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    return sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in files)
