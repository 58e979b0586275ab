"""Parsers and machines of session, VCMTP and AMT under mutated conversations, for minutes; make test takes some."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kit.capabilities import skip

pytestmark = [pytest.mark.system, pytest.mark.nightly]
MANIFEST = Path(__file__).resolve().parents[2] / "workers" / "Cargo.toml"


@pytest.mark.parametrize("crate", ["downburst-session", "downburst-vcmtp", "downburst-amt"])
def test_mutants_for_minutes(crate: str) -> None:
    if shutil.which("cargo") is None:
        skip(f"cargo is not here: the mutants are made by a test of the crate {crate}")
    seconds = os.environ.get("DOWNBURST_FUZZ_SECONDS", "300")
    argv = [
        "cargo",
        "test",
        "--manifest-path",
        str(MANIFEST),
        "--locked",
        "-p",
        crate,
        "--test",
        "fuzz",
    ]
    run = subprocess.run(
        [*argv, "--", "--nocapture"],
        env={**os.environ, "DOWNBURST_FUZZ_SECONDS": seconds},
        capture_output=True,
        text=True,
        timeout=float(seconds) + 1_800,
        check=False,
    )
    print(run.stdout[-2_000:])
    assert run.returncode == 0, run.stdout[-4_000:] + run.stderr[-4_000:]
