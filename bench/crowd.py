"""The row of 500 receivers, which only the simulator has room for."""

import re
import subprocess
from pathlib import Path


def simulated_repair_percent() -> float:
    """Run the simulator's world of 500 receivers that lose 1 % independently; it prints its repair share."""
    argv = ["cargo", "test", "--release", "--quiet", "--locked", "--manifest-path", str(_MANIFEST)]
    argv += ["-p", "downburst-sim", "--test", "crowds", "five_hundred", "--", "--nocapture"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(f"the simulation failed: {done.stderr.strip()[-300:]}")
    return parse(done.stdout)


def parse(printed: str) -> float:
    """Find the share of repairs in what the simulation prints."""
    found = re.search(r"500 receivers, 1 % loss: repairs ([0-9.]+) %", printed)
    if not found:
        raise RuntimeError("the simulation did not print its share of repairs")
    return float(found[1])


_MANIFEST = Path(__file__).resolve().parents[1] / "workers" / "Cargo.toml"
