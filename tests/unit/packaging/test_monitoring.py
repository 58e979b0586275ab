"""What is shipped for Prometheus and Grafana: read by promtool, and of metrics that the hub has."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MONITORING = ROOT / "monitoring"


def promtool(*argv: str) -> None:
    found = ROOT / ".cache" / "promtool" / "promtool"
    command = str(found) if os.access(found, os.X_OK) else shutil.which("promtool")
    if command is None:
        pytest.skip("promtool is not there: scripts/setup.sh test unpacks it")
    done = subprocess.run([command, *argv], capture_output=True, text=True, cwd=MONITORING, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def expressions() -> Iterator[str]:
    """Those of the Grafana board, with its variables filled in."""
    board = json.loads((MONITORING / "grafana-downburst.json").read_text())
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield re.sub(r"\$\w+", ".*", target["expr"])


def test_the_rules_are_good_and_fire_when_they_should() -> None:
    promtool("check", "rules", "downburst.rules.yml")
    promtool("test", "rules", "downburst.rules.test.yml")


def test_grafana_asks_what_prometheus_can_read(tmp_path: Path) -> None:
    rules = [{"record": f"panel:{number}", "expr": expr} for number, expr in enumerate(expressions())]
    file = tmp_path / "panels.yml"
    # JSON is YAML, too.
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", str(file))


def test_everything_asked_for_is_a_metric_of_the_hub() -> None:
    sources = "".join(
        (ROOT / "api" / "downburst_api" / name).read_text() for name in ("metrics.py", "circuit_metrics.py")
    )
    known = set(re.findall(r'"(downburst_\w+)"', sources))
    rules = (MONITORING / "downburst.rules.yml").read_text()
    recorded = set(re.findall(r"record: (downburst:\S+)", rules))
    asked = rules + "\n".join(expressions())
    for name in set(re.findall(r"\bdownburst_\w+", asked)):
        assert re.sub(r"_(total|bucket)$", "", name) in known, name
    for name in set(re.findall(r"\bdownburst:[\w:]+", asked)):
        assert name in recorded, name
