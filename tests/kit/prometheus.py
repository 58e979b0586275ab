"""A real Prometheus that scrapes the processes of a test, and is queried as by Grafana."""

import os
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx
import yaml  # type: ignore[import-untyped]

from kit import running
from kit.capabilities import skip
from kit.patience import wait_for
from kit.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "monitoring" / "downburst.rules.yml"


def program(name: str) -> str:
    """`prometheus` or `promtool`; skips the test where neither set-up nor system has it."""
    unpacked = ROOT / ".cache" / name / name
    found = str(unpacked) if os.access(unpacked, os.X_OK) else shutil.which(name)
    return found or skip(f"{name} is not there; scripts/setup.sh test unpacks it from Debian's package")


@dataclass
class Prometheus:
    """A Prometheus that scrapes an address each second and evaluates the shipped rules."""

    directory: Path
    target: str
    token: str
    address: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True)
        settings = self.directory / "prometheus.yml"
        settings.write_text(yaml.safe_dump(self._settings()))
        argv = [
            program("prometheus"),
            f"--config.file={settings}",
            f"--storage.tsdb.path={self.directory / 'data'}",
            f"--web.listen-address={self.address}",
        ]
        with (self.directory / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(argv, stdout=log, stderr=log)
        running.note(self._process)
        wait_for("Prometheus to be ready", self._is_ready, 60)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """The instant vector or scalar of an expression: labels and value of each element."""
        answer = httpx.get(f"http://{self.address}/api/v1/query", params={"query": expression}, timeout=30)
        body = answer.json()
        assert body["status"] == "success", f"{expression}: {body}"
        return [(row["metric"], float(row["value"][1])) for row in body["data"]["result"]]

    def one(self, expression: str) -> float | None:
        """The single value of an expression; None where it has none."""
        found = self.query(expression)
        assert len(found) <= 1, f"{expression}: {found}"
        return found[0][1] if found else None

    def ask(self, path: str) -> Any:
        """The data of any other query to its api."""
        return httpx.get(f"http://{self.address}/api/v1/{path}", timeout=30).raise_for_status().json()["data"]

    def wait_for(self, expression: str, value: float) -> None:
        """Waits until an expression has a value."""
        wait_for(f"{expression} to be {value}", lambda: self.one(expression) == value, 60)

    def _settings(self) -> dict[str, Any]:
        scrape = {
            "job_name": "downburst",
            "scrape_timeout": "1s",
            "authorization": {"credentials": self.token},
            "static_configs": [{"targets": [self.target]}],
        }
        intervals = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        return {"global": intervals, "rule_files": [str(RULES)], "scrape_configs": [scrape]}

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, (self.directory / "prometheus.log").read_text()[-4000:]
        with suppress(httpx.TransportError):
            return httpx.get(f"http://{self.address}/-/ready", timeout=5).is_success
        return False
