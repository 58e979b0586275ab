"""The row of 500 receivers, which only the simulator has room for."""

import json
import subprocess
from pathlib import Path
from typing import Any


def simulated() -> dict[str, Any]:
    """Build and run the simulation; it prints its figures as JSON."""
    argv = ["cargo", "run", "--release", "--quiet", "--locked", "--manifest-path", str(_MANIFEST)]
    argv += ["-p", "downburst-sim", "--example", "crowd"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(f"the simulation failed: {done.stderr.strip()[-300:]}")
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


_MANIFEST = Path(__file__).resolve().parents[1] / "workers" / "Cargo.toml"
