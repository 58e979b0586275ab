"""The measurement of published figures runs from end to end: real networks for some rows, a page for all."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kit.capabilities import needs

ROOT = Path(__file__).resolve().parents[2]
CHOSEN = ("D22", "C2", "C12", "B5", "W12", "W16", "W18")


@pytest.mark.system
def test_rows_are_measured_and_resumed_and_a_changed_constant_is_seen(tmp_path: Path) -> None:
    needs("root", "netns", "veth", "bridge", "htb", "vxlan")
    out, docs = tmp_path / "result.json", tmp_path / "studies.md"
    done = seeds("--quick", "--only", ",".join(CHOSEN), "--out", str(out), "--docs", str(docs))
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    assert sorted(row["id"] for row in result["rows"]) == sorted(CHOSEN)
    assert all(row["measured"] for row in result["rows"] if row["id"] != "W16"), result["notes"]
    assert docs.read_text().count("\n| ") >= len(CHOSEN)
    share = "downburst_scheduler.models.rates.RELAYED_SHARE"
    again = seeds("--models", "--resume", "--out", str(out), "--with", f"{share}=0.5")
    assert again.returncode == 0, again.stderr
    assert "W16  differs" in again.stdout
    assert json.loads(out.read_text())["rows"][0]["id"] == "D1", "all rows, with the measurements of the first run"


def seeds(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    argv = [sys.executable, "-m", "bench.seeds", *arguments]
    return subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
