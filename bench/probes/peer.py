"""iperf3 by UDP over the same wire, if it is installed."""

import json
import shutil
import subprocess
from pathlib import Path

from bench.harness.report import Goal, Row, median
from bench.probes.path import WIRE_BPS, M, MissingError, wired

PAYLOAD_BYTES, FRAME_BYTES = 1_200, 66


def iperf3_rows(directory: Path, runs: int) -> list[Row]:
    """The rate that arrives when iperf3 sends more than the wire carries, beside the wire's."""
    if shutil.which("iperf3") is None:
        raise MissingError("iperf3 is not installed (apt-get install iperf3), so no peer stands beside the knee")
    found = []
    for run in range(runs):
        with wired(directory / str(run)) as path:
            server = path.lab.run("far", ["iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
            flood = ["iperf3", "-c", path.wire.right_address, "-u", "-b", f"{2 * WIRE_BPS}", "-l", f"{PAYLOAD_BYTES}"]
            report = json.loads(path.lab.output("hub", [*flood, "-t", "3", "-J"]))
            server.wait(timeout=30)
        payload_bps = report["end"]["sum_received"]["bits_per_second"]
        found.append(payload_bps * (PAYLOAD_BYTES + FRAME_BYTES) / PAYLOAD_BYTES / M)
    goal = Goal("ratio", "1 +-", 0.05)
    case = "iperf3 -u at twice the wire's rate: rate that arrives"
    return [Row("3", case, "Mb/s", median(found), "wire", WIRE_BPS / M, runs, goal)]
