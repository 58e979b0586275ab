"""The programs of the workspace that tests and measurements run."""

import os
from pathlib import Path


def built(name: str) -> Path:
    """A program of one build, so that all programs match; AssertionError with the remedy if it is missing.

    `DOWNBURST_PROFILE` selects the build: `debug`, with internal checks, is made by `make setup-test` for tests,
    `release` is for measurements. Without it, the build with the newer node is taken.
    """
    program = _build() / name
    assert program.is_file(), f"{name} is not built ({program}); run: make setup-test"
    return program


def with_kafka() -> Path | None:
    """The node of the same build that keeps feeds on Kafka; none where it was not built."""
    program = _build() / "downburst-node-kafka"
    return program if program.is_file() else None


def _build() -> Path:
    target = Path(os.environ.get("CARGO_TARGET_DIR", WORKSPACE / "target"))
    return target / (os.environ.get("DOWNBURST_PROFILE") or _newer(target))


def _newer(target: Path) -> str:
    nodes = {profile: target / profile / "downburst-node" for profile in ("release", "debug")}
    times = {profile: node.stat().st_mtime for profile, node in nodes.items() if node.is_file()}
    return max(times, key=lambda profile: times[profile], default="debug")


WORKSPACE = Path(__file__).parents[2] / "workers"
