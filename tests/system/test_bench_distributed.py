"""The measurement of a hub of several machines runs to its end, tiny: its figures mean nothing, its checks do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kit.capabilities import skip
from kit.programs import with_kafka

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.nightly
@pytest.mark.system
def test_throughput_and_scale_out_are_measured_and_complete(tmp_path: Path) -> None:
    if with_kafka() is None:
        skip("downburst-node-kafka is not built; run: make test-cluster")
    out = tmp_path / "result.json"
    argv = [sys.executable, "-m", "bench.distributed", "--rows", "1,2,3", "--runs", "1", "--products", "400"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    done = subprocess.run(
        [*argv, "--out", str(out)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    assert [row["id"] for row in result["rows"]] == ["1", "2", "3", "3", "3"]
    assert all(row["ours"] > 0 and row["theirs"] > 0 for row in result["rows"])
