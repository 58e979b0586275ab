"""The measurement of multicast runs from end to end, tiny: its figures mean nothing here, its checks do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kit.capabilities import needs

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.system
def test_files_messages_and_the_minute_are_measured_and_complete(tmp_path: Path) -> None:
    needs("root", "netns", "veth", "bridge", "nft-numgen", "htb")
    out = tmp_path / "result.json"
    argv = [sys.executable, "-m", "bench.multicast", "--rows", "3,9,11", "--runs", "1", "--scale", "0.05"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    done = subprocess.run(
        [*argv, "--only-ours", "--out", str(out)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    assert [row["id"] for row in result["rows"]] == [*"33999999", "11", "11"], result["notes"]
    assert all(row["ours"] > 0 for row in result["rows"])
    trouble = ("NOT MEASURED", "repeated", "incomplete")
    assert not [note for note in result["notes"] if any(word in note for word in trouble)]
