"""The Debian packages: built, installed under a systemd of their own, upgraded, downgraded and removed.

`DOWNBURST_PACKAGES` names a folder with packages that `scripts/deb.sh` has already made.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.debian import Debian, debian
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.nightly]
ROOT = Path(__file__).resolve().parents[2]
HUB = "downburst-hub.service"
SITE = "downburst-site.service"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with this release, a later one, one whose node does not start, and one that does not read settings."""
    folder = tmp_path_factory.mktemp("packages")
    if made := os.environ.get("DOWNBURST_PACKAGES"):
        shutil.copytree(made, folder, dirs_exist_ok=True)
    else:
        argv = [ROOT / "scripts" / "deb.sh", folder]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=1800)
        assert done.returncode == 0, done.stdout + done.stderr
    unpacked = folder / "unpacked"
    run("dpkg-deb", "--raw-extract", str(package(folder, "0.1.0")), str(unpacked))
    repack(unpacked, "9.0")
    parts = unpacked / "usr/lib/downburst/downburst"
    (parts / "migrations/versions/v9999_a_step.py").write_text(STEP.format(head=head_of(parts)))
    node = unpacked / "usr/lib/downburst/downburst-node"
    node.write_text("#!/bin/sh\nexit 1\n")
    repack(unpacked, "9.1")
    shutil.rmtree(unpacked)
    return folder


@pytest.fixture(scope="module")
def machine(packages: Path) -> Iterator[Debian]:
    with debian() as booted:
        shutil.copytree(packages, booted.root / "packages")
        # The machine of the tests may not allow as many as the unit requests.
        limit = booted.root / f"etc/systemd/system/{HUB}.d/limit.conf"
        limit.parent.mkdir(parents=True)
        limit.write_text("[Service]\nLimitNOFILE=16384\n")
        yield booted


def test_a_product_goes_from_the_hubs_service_to_the_sites(machine: Debian) -> None:
    machine.run("dpkg", "--install", inside("downburst-node_0.1.0"), inside("downburst_0.1.0"))
    for unit in (HUB, SITE):
        assert machine.run("systemctl", "is-enabled", unit, code=None).stdout.strip() == "disabled"
        assert machine.run("systemctl", "is-active", unit, code=None).stdout.strip() == "inactive"
    machine.run("systemctl", "enable", "--now", HUB)
    wait_for("a hub that answers", lambda: asked(machine, "status", code=None).returncode == 0, 120)
    asked(machine, "feeds", "add", "NGRID", "--class", "grid")
    asked(machine, "sites", "add", "unl.edu", "--allow", "NGRID")
    asked(machine, "subscriptions", "add", "unl.edu", "NGRID", "--pattern", ".*")
    token = asked(machine, "sites", "token", "unl.edu").stdout
    file = machine.root / "etc/downburst/site.token"
    file.write_text(token)
    machine.run("chown", "downburst:", "/etc/downburst/site.token")
    machine.run("chmod", "0600", "/etc/downburst/site.token")
    machine.run("sed", "-i", "s/^HUB=.*/HUB=127.0.0.1:7370/", "/etc/downburst/site.conf")
    machine.run("systemctl", "enable", "--now", SITE)
    arrives(machine, "first")


def test_processes_run_as_nobody_special(machine: Debian) -> None:
    told = machine.run("ps", "-e", "-o", "user:20=,args=").stdout.splitlines()
    ours = [line for line in told if "downburst" in line.split(None, 1)[1] and "ps -e" not in line]
    assert len(ours) >= 3, told
    assert {line.split()[0] for line in ours} == {"downburst"}


@pytest.mark.parametrize("unit", [HUB, SITE])
def test_a_killed_service_is_started_again_and_goes_on(machine: Debian, unit: str) -> None:
    before = main_process(machine, unit)
    machine.run("kill", "-9", before)
    wait_for("another process", lambda: main_process(machine, unit) not in ("0", before), STOP_S + 30)
    wait_for("a hub that answers", lambda: asked(machine, "status", code=None).returncode == 0, 120)
    arrives(machine, f"after a kill of {unit}")


def test_an_upgrade_keeps_what_the_hub_knows(machine: Debian) -> None:
    first = inside("downburst_0.1.0")
    machine.run("downburst-upgrade", "--previous", first, inside("downburst_9.0"))
    assert installed(machine) == "9.0"
    arrives(machine, "after the upgrade")


def test_a_release_that_does_not_come_up_is_taken_back_with_the_ledger(machine: Debian) -> None:
    schema = asked(machine, "migrate", "--check", "--settings", "/etc/downburst/hub.toml").stdout
    done = machine.run("env", "DOWNBURST_WELL_S=20", "downburst-upgrade", inside("downburst_9.1"), code=1)
    assert "a_step" in done.stdout, "the new release said that it changes the schema"
    assert "the hub runs release 9.0 as before" in done.stderr
    assert installed(machine) == "9.0"
    assert asked(machine, "migrate", "--check", "--settings", "/etc/downburst/hub.toml").stdout == schema
    arrives(machine, "after going back")
    left = [path.name for path in (machine.root / "var/lib/downburst").glob("*.before-upgrade*")]
    assert left == []


def test_settings_that_nobody_knows_stop_an_upgrade_before_it_begins(machine: Debian) -> None:
    settings = machine.root / "etc/downburst/hub.toml"
    text, before = settings.read_text(), main_process(machine, HUB)
    settings.write_text(f'wind = "north"\n{text}')
    try:
        done = machine.run("downburst-upgrade", inside("downburst_9.1"), code=1)
        assert "wind" in done.stderr
        assert "nothing was changed" in done.stderr
    finally:
        settings.write_text(text)
    assert (installed(machine), main_process(machine, HUB)) == ("9.0", before)


def test_an_upgrade_without_a_way_back_is_refused(machine: Debian) -> None:
    machine.run("sh", "-c", "mv /var/cache/downburst /var/cache/downburst.aside")
    try:
        done = machine.run("downburst-upgrade", inside("downburst_9.1"), code=1)
        assert "no package of the installed release 9.0 to go back to" in done.stderr
    finally:
        machine.run("mv", "/var/cache/downburst.aside", "/var/cache/downburst")
    done = machine.run("downburst-upgrade", inside("downburst-node_0.1.0"), code=1)
    assert "is no package of the hub; nothing was changed" in done.stderr


def test_a_service_that_can_not_use_its_settings_says_so_once(machine: Debian) -> None:
    settings = machine.root / "etc/downburst/hub.toml"
    text = settings.read_text()
    settings.write_text(f'wind = "north"\n{text}')
    try:
        machine.run("systemctl", "restart", HUB)
        wait_for("its end", lambda: state(machine, HUB, "ActiveState") == "failed", 60)
        assert (state(machine, HUB, "NRestarts"), state(machine, HUB, "ExecMainStatus")) == ("0", "2")
        assert "wind" in machine.run("journalctl", "--no-pager", "-u", HUB, "-n", "5").stdout
    finally:
        settings.write_text(text)
    machine.run("systemctl", "start", HUB)
    arrives(machine, "after the settings were put right")


def test_a_purge_leaves_data_and_says_where(machine: Debian) -> None:
    done = machine.run("dpkg", "--purge", "downburst", "downburst-node")
    for folder in ("/var/lib/downburst", "/var/lib/downburst-site"):
        assert f"{folder} stays" in done.stderr
    assert (machine.root / "var/lib/downburst/ledger.sqlite").exists()
    assert list((machine.root / "var/lib/downburst-site/received").rglob("*"))
    assert not (machine.root / "usr/lib/downburst").exists(), "compiled modules are gone with their package"
    running = machine.run("ps", "-e", "-o", "args=").stdout
    assert "downburst hub" not in running
    assert "downburst-node" not in running


def test_lintian_finds_no_errors(packages: Path) -> None:
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed; apt-get install lintian")
    files = [str(path) for path in sorted(packages.glob("*_0.1.0_*.deb"))]
    done = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error", *files], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def asked(machine: Debian, *arguments: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    """The hub's command line as its own user."""
    return machine.run("downburst", *arguments, user="downburst", code=code)


def arrives(machine: Debian, words: str) -> None:
    """A product with this content reaches the site."""
    body = f"{words}\n"
    (machine.root / "tmp/product").write_text(body)
    wait_for("a hub that takes a product", lambda: taken(machine, words), 120)
    received = machine.root / "var/lib/downburst-site/received"
    wait_for(f"'{words}' at the site", lambda: any(holds(path, body) for path in received.rglob("*")), 120)


def taken(machine: Debian, words: str) -> bool:
    done = asked(machine, "put", "NGRID", f"packages/{words.replace(' ', '-')}", "/tmp/product", code=None)
    return done.returncode == 0


def holds(path: Path, body: str) -> bool:
    return path.is_file() and path.read_text() == body


def main_process(machine: Debian, unit: str) -> str:
    return state(machine, unit, "MainPID")


def state(machine: Debian, unit: str, name: str) -> str:
    return machine.run("systemctl", "show", "--property", name, "--value", unit).stdout.strip()


def installed(machine: Debian) -> str:
    return machine.run("dpkg-query", "--show", "--showformat", "${Version}", "downburst").stdout


def inside(beginning: str) -> str:
    """The path of a package inside the machine."""
    return f"/packages/{beginning}_{architecture()}.deb"


def package(folder: Path, version: str) -> Path:
    return folder / f"downburst_{version}_{architecture()}.deb"


def architecture() -> str:
    return run("dpkg", "--print-architecture").strip()


def repack(unpacked: Path, version: str) -> None:
    """The same files as another release."""
    control = unpacked / "DEBIAN/control"
    lines = [
        f"Version: {version}" if line.startswith("Version:") else line for line in control.read_text().splitlines()
    ]
    control.write_text("\n".join(lines) + "\n")
    run("dpkg-deb", "--root-owner-group", "-Znone", "--build", str(unpacked), str(package(unpacked.parent, version)))


def head_of(parts: Path) -> str:
    """The latest step of the ledger's schema."""
    latest = max((parts / "migrations/versions").rglob("v*.py"), key=lambda path: path.stem)
    text = latest.read_text()
    return next(line.split('"')[1] for line in text.splitlines() if line.startswith("revision"))


def run(*argv: str) -> str:
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=600, env=environment).stdout


STOP_S = 60
"""The hub's TimeoutStopSec: without cgroups of version 2 no systemd in a namespace hears that all have ended."""
STEP = '''"""A step that a later release takes."""

import sqlalchemy as sa
from alembic import op

revision = "9999_a_step"
down_revision = "{head}"


def upgrade() -> None:
    op.create_table("a_step", sa.Column("id", sa.Integer, primary_key=True))
'''
