"""Debian packages besides programs: units that start existing programs, and settings that load."""

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from downburst.settings.hub import load_settings
from downburst_app.cli import COMMANDS
from downburst_app.cli.help import documents, topics_of

PACKAGING = Path(__file__).resolve().parents[3] / "packaging"
UNITS = sorted((PACKAGING / "systemd").glob("*.service"))
SCRIPTS = sorted(path for path in PACKAGING.glob("*/*") if path.name in ("postinst", "prerm", "postrm"))


def unit(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(path.read_text())
    return parser


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_unit_starts_what_exists_as_nobody_special(path: Path) -> None:
    service = unit(path)["Service"]
    assert (service["User"], service["NoNewPrivileges"], service["ProtectSystem"]) == ("downburst", "yes", "strict")
    program, command, *_ = service["ExecStart"].split()
    assert program in ("/usr/bin/downburst", "/usr/bin/downburst-node")
    assert command in (COMMANDS if program == "/usr/bin/downburst" else {"receive"})
    # Exit code 2 means unusable input: another start would report the same error.
    assert service["RestartPreventExitStatus"] == "2"


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_systemd_takes_a_unit_as_it_is(path: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not there: apt-get install systemd")
    # The programs of the packages are not installed on this machine.
    text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", path.read_text(), flags=re.MULTILINE)
    (tmp_path / path.name).write_text(text)
    argv = ["systemd-analyze", "verify", "--man=no", str(tmp_path / path.name)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    told = [line for line in done.stderr.splitlines() if path.name in line]
    assert told == []


def test_the_settings_of_the_package_can_be_used() -> None:
    settings = load_settings(PACKAGING / "hub" / "hub.toml")
    assert str(settings.data_dir) == "/var/lib/downburst"
    assert settings.sites.startswith("127."), "a fresh installation opens no port to the world"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_scripts_of_maintainers_stop_at_errors_and_can_be_run(path: Path) -> None:
    assert path.read_text().startswith("#!/bin/sh\nset -e\n")
    assert path.stat().st_mode & 0o111
    assert subprocess.run(["sh", "-n", str(path)], check=False).returncode == 0


def test_data_and_credentials_outlive_a_purge() -> None:
    for path in SCRIPTS:
        assert not re.search(r"\brm\b", path.read_text()), path


def test_pages_of_the_manual_that_sites_get_are_topics() -> None:
    script = (PACKAGING.parent / "scripts" / "deb.sh").read_text()
    found = re.search(r"^MANUAL_OF_SITES=\(([^)]*)\)", script, re.MULTILINE)
    assert found
    topics = {f"man{one.section}/downburst-{one.name}.{one.section}" for one in topics_of(documents())}
    assert set(found[1].split()) <= topics
