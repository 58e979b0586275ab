"""The measurement of unicast runs from end to end, tiny: its figures mean nothing here, its checks do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kit.capabilities import needs

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.system
def test_catch_up_live_crowd_and_giant_are_measured_and_complete(tmp_path: Path) -> None:
    needs("root", "netns", "veth", "bridge", "htb", "tun")
    out = tmp_path / "result.json"
    argv = [sys.executable, "-m", "bench.unicast", "--rows", "2,6,9,11", "--runs", "1", "--scale", "0.05"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    done = subprocess.run(
        [*argv, "--out", str(out)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    assert [row["id"] for row in result["rows"]] == ["2", "2", "6", "6", "6", "9", "9", "11", "11"], result["notes"]
    assert all(row["ours"] > 0 for row in result["rows"])
    assert not [note for note in result["notes"] if "NOT MEASURED" in note or "repeated" in note]
    assert {"load_1min", "load_1min_after"} <= set(result["machine"])
