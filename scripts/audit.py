"""Scans what Downburst is built from: licences, bans, sources, and known vulnerabilities in crates and packages.

Writes dist/audit.json beside what it prints. A scan that found something ends the command with 1. A scan without
its program or its database of advisories is recorded as not run, with the reason, and never as passed.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Scan:
    """How one scan went: `passed`, `found` or `not run`."""

    scan: str
    outcome: str
    sentence: str


def main() -> int:
    """Runs all scans, whatever the others found."""
    scans = [scan() for scan in SCANS]
    for one in scans:
        print(f"{one.outcome:8} {one.scan:22} {one.sentence}")
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps([asdict(one) for one in scans], indent=1) + "\n")
    return int(any(one.outcome == FOUND for one in scans))


def licences() -> Scan:
    """Of every package of the three kinds, by what they say of themselves."""
    done = run([sys.executable, str(ROOT / "scripts" / "licences.py")])
    return Scan(
        "licences", FOUND if done.returncode else PASSED, last_line(done.stderr if done.returncode else done.stdout)
    )


def crates() -> Scan:
    """Licences by the texts of crates, bans, and where crates come from."""
    done = run([CARGO_DENY, *DENY_OPTIONS, "check", "licenses", "bans", "sources"])
    if done is MISSING:
        return Scan("crates", NOT_RUN, "cargo-deny is not installed; make audit installs it")
    if done.returncode == 0:
        return Scan("crates", PASSED, first_with(done.stdout + done.stderr, "licenses ok"))
    if "[ERROR]" in done.stderr:
        return Scan("crates", NOT_RUN, "cargo-deny could not read the crates: " + first_with(done.stderr, "[ERROR]"))
    return Scan("crates", FOUND, first_with(done.stderr, "error["))


def advisories_of_crates() -> Scan:
    """RustSec's database, which cargo-deny fetches with git."""
    done = run([CARGO_DENY, *DENY_OPTIONS, "check", "advisories"])
    if done is MISSING:
        return Scan("advisories of crates", NOT_RUN, "cargo-deny is not installed; make audit installs it")
    if "failed to fetch advisory database" in done.stderr:
        return Scan("advisories of crates", NOT_RUN, NO_DATABASE)
    sentence = first_with(done.stderr, "error[") if done.returncode else last_line(done.stdout + done.stderr)
    return Scan("advisories of crates", FOUND if done.returncode else PASSED, sentence)


def advisories_of_python() -> Scan:
    """PyPI's advisories on what a hub runs with; a package that was skipped is not one that passed."""
    command = [PIP_AUDIT, "--require-hashes", "--disable-pip", "--format", "json", "--requirement"]
    done = run([*command, str(ROOT / "requirements-image.lock"), "--strict"])
    if done is MISSING:
        return Scan("advisories of Python", NOT_RUN, "pip-audit is not installed; make audit installs it")
    if (report := parsed(done.stdout)) is None:
        # With --strict it ends at the first package that can't be judged; without, it names them all.
        report = parsed(run([*command, str(ROOT / "requirements-image.lock")]).stdout)
    if report is None:
        return Scan("advisories of Python", NOT_RUN, f"{NO_DATABASE} ({last_line(done.stderr)})")
    packages = report["dependencies"]
    vulnerable = [f"{one['name']} {one['version']}: {one['vulns'][0]['id']}" for one in packages if one.get("vulns")]
    skipped = [one["name"] for one in packages if "skip_reason" in one]
    if vulnerable:
        return Scan("advisories of Python", FOUND, "; ".join(vulnerable))
    if skipped:
        return Scan("advisories of Python", NOT_RUN, f"{NO_DATABASE} for {len(skipped)} of {len(packages)} packages")
    return Scan("advisories of Python", PASSED, f"none known of {len(packages)} packages")


def advisories_of_npm() -> Scan:
    """The registry's advisories on what the page is built with."""
    done = run(["npm", "audit", "--json", "--prefix", str(ROOT / "services" / "dashboard")])
    report = parsed(done.stdout)
    if report is None or "vulnerabilities" not in report:
        return Scan("advisories of npm", NOT_RUN, NO_DATABASE)
    if report["vulnerabilities"]:
        return Scan("advisories of npm", FOUND, ", ".join(sorted(report["vulnerabilities"])))
    return Scan("advisories of npm", PASSED, "none known")


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """What a program printed; MISSING where there is no such program."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=PATIENCE_S)
    except FileNotFoundError:
        return MISSING
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"[ERROR] no answer within {PATIENCE_S} s")


def parsed(text: str) -> Mapping[str, list[dict[str, object]]] | None:
    """A JSON object, or None."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def first_with(text: str, mark: str) -> str:
    """The first line that has the mark."""
    return next((line.strip() for line in text.splitlines() if mark in line), last_line(text))


def last_line(text: str) -> str:
    """What a program said last."""
    return text.strip().rpartition("\n")[2]


ROOT = Path(__file__).resolve().parents[1]
OUT = Path(os.environ.get("DOWNBURST_AUDIT_REPORT", ROOT / "dist" / "audit.json"))
CARGO_DENY = os.environ.get("CARGO_DENY", str(ROOT / ".cache" / "cargo-deny" / "bin" / "cargo-deny"))
PIP_AUDIT = os.environ.get("PIP_AUDIT", str(ROOT / ".cache" / "pip-audit" / "bin" / "pip-audit"))
DENY_OPTIONS = ["--locked", "--manifest-path", "workers/Cargo.toml", "--config", "workers/deny.toml"]
PASSED, FOUND, NOT_RUN = "passed", "found", "not run"
NO_DATABASE = "no advisory database reachable"
PATIENCE_S = 300
MISSING: subprocess.CompletedProcess[str] = subprocess.CompletedProcess([], 127, "", "")
SCANS: list[Callable[[], Scan]] = [licences, crates, advisories_of_crates, advisories_of_python, advisories_of_npm]

if __name__ == "__main__":
    sys.exit(main())
