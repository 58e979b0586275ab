"""`downburst doctor` on a real machine."""

import json
import subprocess
import sys
from pathlib import Path

DOWNBURST = str(Path(sys.executable).with_name("downburst"))


def test_the_machine_that_runs_these_tests_is_looked_at(tmp_path: Path) -> None:
    argv = [DOWNBURST, "doctor", "--data-dir", str(tmp_path), "--json"]
    told = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    findings = json.loads(told.stdout)
    assert {one["about"] for one in findings} == {
        *("system", "clock", "multicast", "buffers", "privileges", "disk", "ports", "versions")
    }
    bad = [one for one in findings if one["state"] == "bad"]
    assert told.returncode == (1 if bad else 0), told.stdout
    assert all(one["remedy"] for one in bad if one["about"] != "versions"), bad
    assert all(one["state"] == "ok" for one in findings if one["about"] == "system" and "Linux" in one["sentence"])
