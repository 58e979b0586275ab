"""The programs that a measurement runs: those of the workspace, built by `make setup-test`, and those of peers."""

import os
from pathlib import Path


def binary(name: str) -> Path:
    """Find a build of the workspace, a release build if there is one."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", _ROOT / "workers" / "target"))
    for profile in ("release", "debug"):
        built = target / profile / name
        if built.is_file():
            return built
    raise FileNotFoundError(f"{name} is not built ({target}); run: make setup-test")


_ROOT = Path(__file__).resolve().parents[1]
PEERS = _ROOT / ".cache" / "peers"
"""Programs of peers, in the versions that `bench` locks."""
