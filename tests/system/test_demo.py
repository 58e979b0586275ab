"""The demo as a stranger runs it: a hub, sites, feeds, a plan change in flight, and a report that checks files."""

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from downburst.foundation.file_names import decode
from kit.capabilities import skip
from kit.node import node_binary

pytestmark = pytest.mark.system
ROOT = Path(__file__).resolve().parents[2]


def demo(directory: Path, *arguments: str) -> dict[str, Any]:
    """Runs the demo to its end and returns its report; a failure shows its output."""
    report, kept = directory / "report.json", directory / "kept"
    argv = [str(Path(sys.executable).with_name("downburst")), "demo", "--exit", "--report", str(report)]
    argv += ["--keep", str(kept), *arguments]
    environment = {**os.environ, "DOWNBURST_NODE": node_binary()}
    run = subprocess.run(argv, capture_output=True, text=True, timeout=600, env=environment, check=False)
    assert run.returncode == 0, f"{run.stdout[-6000:]}\n{run.stderr[-4000:]}"
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def assert_all_is_well(report: dict[str, Any], *, sites: int) -> None:
    assert len(report["sites"]) == sites
    for site in report["sites"]:
        assert site["stored"] == site["expected"] > 0, site
        assert (site["duplicates"], site["mismatched"]) == (0, 0), site
    transports = {feed["feed"]: [plan["transport"] for plan in feed["plans"]] for feed in report["feeds"]}
    assert any(plans[-1] == "multicast" for plans in transports.values()), transports
    assert any(set(plans) == {"unicast"} for plans in transports.values()), transports
    assert any({"unicast", "multicast"} <= set(plans) for plans in transports.values()), "no change in flight"
    measured = [feed["distribution_ms"] for feed in report["feeds"]]
    assert all(latency["p50"] is not None and latency["p50"] <= latency["max"] for latency in measured), measured
    assert report["hub_egress_bytes"] < report["unicast_equivalent_bytes"]


def test_the_built_in_feeds_reach_every_site(tmp_path: Path) -> None:
    report = demo(tmp_path, "--sites", "4", "--seconds", "25")
    assert_all_is_well(report, sites=4)
    for plan in (plan for feed in report["feeds"] for plan in feed["plans"]):
        assert plan["reason"].startswith(plan["transport"]), plan["reason"]


@pytest.mark.nightly
def test_every_real_file_reaches_every_site_that_subscribes(tmp_path: Path) -> None:
    data = Path(os.environ.get("DOWNBURST_DATA", ROOT.parent / "shared" / "data"))
    if not data.is_dir():
        skip(f"{data} is not there; set DOWNBURST_DATA to a directory of real products")
    report = demo(tmp_path, "--data", str(data), "--sites", "5")
    assert_all_is_well(report, sites=5)
    wanted = {sha256(path.read_bytes()).hexdigest() for path in data.rglob("*") if path.is_file()}
    received = tmp_path / "kept" / "sites" / "site-1" / "received"
    files = {path: sha256(path.read_bytes()).hexdigest() for path in received.rglob("*") if path.is_file()}
    assert set(files.values()) == wanted, "a file is missing or different at the site that takes everything"
    assert len({decode(path.relative_to(received).as_posix()) for path in files}) == len(files)
