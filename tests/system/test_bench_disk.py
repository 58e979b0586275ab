"""The measurement of a disk runs from end to end, tiny: its figures mean nothing here, its checks do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kit.capabilities import needs, skip

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.system
def test_writes_processor_time_giant_and_durable_products_are_measured_and_complete(tmp_path: Path) -> None:
    needs("root", "netns", "veth", "bridge")
    out = tmp_path / "result.json"
    argv = [sys.executable, "-m", "bench.disk", "--runs", "1", "--scale", "0.01", "--only-ours"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    done = subprocess.run(
        [*argv, "--directory", str(tmp_path), "--out", str(out)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode == 2:
        skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    written = [row for row in result["rows"] if row["id"] == "1" and "device" not in row["case"]]
    others = [row for row in result["rows"] if row["id"] != "1"]
    assert (len(written), [row["id"] for row in others]) == (6, [*"2233333333333", "4", "4"]), result["notes"]
    assert all(row["ours"] > 0 for row in [*written, *others] if "growth" not in row["case"])
    assert not [note for note in result["notes"] if "NOT MEASURED" in note or "repeated" in note]
    assert {"load_1min", "load_1min_after", "file_system"} <= set(result["machine"])
