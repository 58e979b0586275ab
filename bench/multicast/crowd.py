"""The row of 500 receivers, which only the simulator can hold."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SimulatedCrowd:
    """The cost of 500 receivers."""

    repair_percent: float
    """Of the product bytes, with 1 % independent loss at each."""
    requests_per_loss: float
    """Requests at the sender for a run of packets that all lost."""
    repairs_per_loss: float
    """Group repair for each byte that all lost: 1 is one repair of each."""


def simulated() -> SimulatedCrowd:
    """Play the simulator's worlds of 500 receivers, and parse their output."""
    argv = ["cargo", "test", "--release", "--quiet", "--locked", "--manifest-path", str(_MANIFEST)]
    argv += ["-p", "downburst-sim", "--test", "crowds", "--", "--nocapture"]
    sites = {**os.environ, "DOWNBURST_CROWD_SITES": "500"}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False, env=sites)
    if done.returncode:
        raise RuntimeError(f"the simulation failed: {done.stderr.strip()[-300:]}")
    return parse(done.stdout)


def parse(printed: str) -> SimulatedCrowd:
    """Find the figures in the simulation's output."""
    repairs = re.search(r"500 receivers, 1 % loss: repairs ([0-9.]+) %", printed)
    shared = re.search(r"500 receivers, a loss that all share: ([0-9.]+) requests, ([0-9.]+) repairs", printed)
    if not repairs or not shared:
        raise RuntimeError("the simulation did not print what it found")
    return SimulatedCrowd(float(repairs[1]), float(shared[1]), float(shared[2]))


_MANIFEST = Path(__file__).resolve().parents[2] / "workers" / "Cargo.toml"
