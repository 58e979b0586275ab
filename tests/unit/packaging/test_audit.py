"""Scans fail on planted licences, planted advisories, and databases that are unreachable."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


class Planted:
    """Packages of each kind, as their tools keep them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python("fine", "License-Expression: MIT")
        self.npm, self.crates = {"fine": "MIT"}, {"fine": "MIT OR GPL-3.0-only"}

    def python(self, name: str, licence: str) -> None:
        info = self.folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n{licence}\n")

    def judged(self) -> subprocess.CompletedProcess[str]:
        packages = {f"node_modules/{name}": {"version": "1.0", "license": text} for name, text in self.npm.items()}
        (self.folder / "lock.json").write_text(json.dumps({"packages": {"": {"name": "page"}} | packages}))
        crates = [
            {"name": name, "version": "1.0", "license": text, "source": "registry"}
            for name, text in self.crates.items()
        ]
        own = {"name": "own", "version": "1.0", "license": None, "source": None}
        (self.folder / "cargo.json").write_text(json.dumps({"packages": [own, *crates]}))
        places = {"--site-packages": self.folder, "--lock": self.folder / "lock.json"}
        options = [str(word) for pair in places.items() for word in pair]
        command = [str(ROOT / "scripts" / "licences.py"), *options, "--cargo", str(self.folder / "cargo.json")]
        return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    return Planted(tmp_path)


def test_allowed_licences_pass(planted: Planted) -> None:
    planted.python("old", "Classifier: License :: OSI Approved :: MIT License")
    planted.python("psycopg", "License-Expression: LGPL-3.0-only")
    planted.crates["choice"] = "(MIT OR GPL-2.0-only) AND Apache-2.0 WITH LLVM-exception"
    done = planted.judged()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "licences: 3 python, 1 npm, 2 crate; 0 not allowed\n"


@pytest.mark.parametrize(
    ("licence", "sentence"),
    [
        ("License-Expression: AGPL-3.0-only", "AGPL-3.0-only is not allowed"),
        ("License-Expression: MIT AND GPL-2.0-or-later", "MIT AND GPL-2.0-or-later is not allowed"),
        ("License: Do what we say, or else", "'Do what we say, or else' is no SPDX expression"),
        ("Summary: without a word on it", "none is not allowed"),
        ("License-Expression: (MIT", "'(MIT' is no SPDX expression"),
        ("License-Expression: MIT GPL-2.0-only", "'MIT GPL-2.0-only' is no SPDX expression"),
        ("License-Expression: LGPL-3.0-only", "LGPL-3.0-only is not allowed"),
    ],
)
def test_a_planted_licence_of_python_is_found(planted: Planted, licence: str, sentence: str) -> None:
    planted.python("bad", licence)
    done = planted.judged()
    assert done.returncode == 1
    assert f"python bad 1.0: {sentence}" in done.stderr


def test_planted_licences_of_page_and_crates_are_found(planted: Planted) -> None:
    planted.npm["bad"], planted.crates["worse"] = "SSPL-1.0", "GPL-3.0-only"
    done = planted.judged()
    assert done.returncode == 1
    assert "npm bad 1.0: SSPL-1.0 is not allowed" in done.stderr
    assert "crate worse 1.0: GPL-3.0-only is not allowed" in done.stderr


def test_a_kind_without_packages_is_not_a_good_end(planted: Planted) -> None:
    planted.crates.clear()
    done = planted.judged()
    assert done.returncode == 1
    assert "no package of kind crate was found" in done.stderr


UNREACHABLE = {
    "cargo-deny": """case "$*" in *advisories*) echo "[ERROR] failed to fetch advisory database" >&2; exit 1;; esac
        echo licenses ok""",
    "npm": 'echo \'{"message": "405 Method Not Allowed"}\'; exit 1',
    "pip-audit": """case "$*" in *--strict*) exit 1;; esac
        echo '{"dependencies": [{"name": "a", "skip_reason": "no"}]}'""",
}
REACHED = {
    "cargo-deny": "echo all ok",
    "npm": "echo '{\"vulnerabilities\": {}}'",
    "pip-audit": 'echo \'{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}\'',
}
FINDINGS = {
    "cargo-deny": """case "$*" in *advisories*) echo "error[vulnerability]: RUSTSEC-2026-0001" >&2; exit 1;; esac
        echo licenses ok""",
    "npm": 'echo \'{"vulnerabilities": {"uplot": {}}}\'; exit 1',
    "pip-audit": """echo '{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1"}]}]}'
        exit 1""",
}
ADVISORIES = ("advisories of crates", "advisories of Python", "advisories of npm")


def audit(folder: Path, programs: dict[str, str]) -> tuple[int, dict[str, dict[str, str]]]:
    """Exit code and report of a scan whose programs are these scripts."""
    for name, script in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    report = folder / "report" / "audit.json"
    environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "DOWNBURST_AUDIT_REPORT": str(report)}
    environment |= {"CARGO_DENY": str(folder / "cargo-deny"), "PIP_AUDIT": str(folder / "pip-audit")}
    command = [sys.executable, str(ROOT / "scripts" / "audit.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert report.exists(), done.stderr
    return done.returncode, {one["scan"]: one for one in json.loads(report.read_text())}


def test_a_database_that_is_not_reached_is_recorded_as_not_run(tmp_path: Path) -> None:
    code, scans = audit(tmp_path, UNREACHABLE)
    assert code == 0
    assert {scans[name]["outcome"] for name in ADVISORIES} == {"not run"}
    assert all("no advisory database reachable" in scans[name]["sentence"] for name in ADVISORIES)


def test_scans_that_found_nothing_passed(tmp_path: Path) -> None:
    code, scans = audit(tmp_path, REACHED)
    assert code == 0
    assert {scan["outcome"] for scan in scans.values()} == {"passed"}


def test_an_advisory_fails_the_scan(tmp_path: Path) -> None:
    code, scans = audit(tmp_path, FINDINGS)
    assert code == 1
    assert {scans[name]["outcome"] for name in ADVISORIES} == {"found"}
    assert "PYSEC-1" in scans["advisories of Python"]["sentence"]


def test_a_program_that_is_not_there_is_recorded_as_not_run(tmp_path: Path) -> None:
    code, scans = audit(tmp_path, {"npm": REACHED["npm"]})
    assert code == 0
    assert scans["crates"]["sentence"] == "cargo-deny is not installed; make audit installs it"
    assert scans["advisories of Python"]["outcome"] == "not run"
