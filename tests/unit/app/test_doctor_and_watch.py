"""Findings of `doctor` about a machine, and the lines of `watch`."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from downburst.foundation.errors import NotFound
from downburst.host.host_clock import ClockSource, HostClock
from downburst.settings.hub import Settings, load_settings
from downburst_app.cli import app
from downburst_app.cli.hub import doctor
from downburst_app.cli.sites.watching import watched


@pytest.fixture(autouse=True)
def _quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the checks that need sockets; `tests/integration/test_doctor.py` examines the machine itself."""
    monkeypatch.setattr(doctor, "multicast_is_heard", lambda: True)
    monkeypatch.setattr(doctor, "_may_listen", lambda _, port: port not in TAKEN)
    monkeypatch.setattr(doctor, "_health_of", lambda _: None)
    monkeypatch.setattr(doctor, "_bridges_of", lambda _: ([], []))
    monkeypatch.setattr(doctor, "provider_found", lambda _: [])


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(None, data_dir=tmp_path, http="127.0.0.1:0", sites="127.0.0.1:0")


def found(about: str, settings: Settings) -> list[tuple[str, str]]:
    return [(one.state, one.sentence) for one in doctor.examine(settings) if one.about == about]


def test_every_look_finds_something_and_none_breaks_off(settings: Settings) -> None:
    findings = list(doctor.examine(settings))
    assert {one.about for one in findings} == {
        *("system", "clock", "multicast", "amt", "buffers", "privileges", "real-time", "transports"),
        *("disk", "ports", "versions", "probes", "bridges", "sign-in"),
    }
    assert {one.state for one in findings} <= {"ok", "weak", "bad"}
    assert all(one.sentence and "\n" not in one.sentence for one in findings)


@pytest.mark.parametrize(
    ("synchronised", "error_us", "expected"), [(False, 0, "bad"), (True, 500_000, "weak"), (True, 900, "ok")]
)
def test_a_clock_without_a_reference_is_bad(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, *, synchronised: bool, error_us: int, expected: str
) -> None:
    clock = HostClock(ClockSource.CHRONY, synchronised, error_us, "ntp.example.net")
    monkeypatch.setattr(doctor, "read_host_clock", lambda: clock)
    ((state, sentence),) = found("clock", settings)
    assert state == expected
    assert "chrony" in sentence


def test_a_look_that_fails_is_told(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> HostClock:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(doctor, "read_host_clock", broken)
    assert found("clock", settings) == [("weak", "can't be checked: [Errno 1] Operation not permitted")]


def test_a_port_of_another_program_is_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = load_settings(None, data_dir=tmp_path, http="127.0.0.1:0", sites="127.0.0.1:7370")
    assert found("ports", taken)[1] == ("bad", "sites: another program listens on 127.0.0.1:7370")
    monkeypatch.setattr(doctor, "_health_of", lambda _: {"ledger": "ok"})
    assert found("ports", taken)[1] == ("ok", "sites: a hub listens on 127.0.0.1:7370")


def test_a_network_without_multicast_is_told(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "multicast_is_heard", lambda: False)
    assert found("multicast", settings) == [("weak", "packets to a group are not received here")]


def test_findings_are_json_and_something_bad_is_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: object) -> Path:
        raise NotFound("downburst-node is not here; install it")

    monkeypatch.setattr(doctor, "find_node", missing)
    told = CliRunner().invoke(app, ["doctor", "--data-dir", str(tmp_path), "--json"])
    assert told.exit_code == 1
    bad = [one for one in json.loads(told.stdout) if one["state"] == "bad" and one["about"] == "versions"]
    assert [one["sentence"] for one in bad] == ["downburst-node is not here; install it"]
    plain = CliRunner().invoke(app, ["doctor", "--data-dir", str(tmp_path)])
    assert "bad   versions    downburst-node is not here; install it" in plain.stdout


def test_lines_are_those_of_ldm() -> None:
    tail = [
        "20261122T161558.123456Z 1095 20261122161557.867 IDS|DDPLUS 64519 SAUS70 KWBC RRM\n",
        "20261122T161559.000000Z 2048 20261122161558.000 NGRID 7 YAAA85 KWBH /mGFS\n",
        "a line that is none\n",
    ]
    assert list(watched(tail, feeds=None, pattern=re.compile("."))) == [
        "20261122T161558.123456Z watch INFO      1095 20261122161557.867 IDS|DDPLUS 000064519  SAUS70 KWBC RRM",
        "20261122T161559.000000Z watch INFO      2048 20261122161558.000   NGRID 000000007  YAAA85 KWBH /mGFS",
    ]
    assert len(list(watched(tail, feeds=["NGRID"], pattern=re.compile(".")))) == 1
    assert len(list(watched(tail, feeds=None, pattern=re.compile("^SA.*RRM$")))) == 1


def test_a_pattern_that_can_not_be_read_is_one_sentence(tmp_path: Path) -> None:
    refused = CliRunner().invoke(app, ["watch", "-p", "(", "--data-dir", str(tmp_path)])
    assert "can't be read" in str(refused.exception)


TAKEN = {7370}


def test_a_probe_that_fails_is_bad_and_has_a_remedy(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    health = {"code": "probe-failed", "probes": {"ledger": "the ledger is locked", "node": "ok"}}
    monkeypatch.setattr(doctor, "_health_of", lambda _: health)
    ledger, node = (one for one in doctor.examine(settings) if one.about == "probes")
    assert (ledger.state, ledger.sentence) == ("bad", "ledger fails: the ledger is locked")
    assert "locks the ledger" in ledger.remedy
    assert (node.state, node.sentence) == ("ok", "node passes")


def test_the_space_of_linked_files_that_left_a_sites_log_is_told(tmp_path: Path) -> None:
    node = tmp_path / "node"

    def told(linked_bytes: int) -> str:
        files = {"asked": "link", "used": "link", "reason": None, "linked_bytes": linked_bytes}
        node.write_text(f"#!/bin/sh\necho '{json.dumps({'hubs': [], 'files': files})}'\n")
        node.chmod(0o755)
        (found,) = doctor.findings_of_site(node, tmp_path)
        return found.sentence

    assert told(0) == "the way of large products to files is link"
    assert told(3_000_000_000).endswith(
        "; 3 GB of products that left the log still take space, because their files exist"
    )


def test_a_group_of_a_site_that_drops_is_told_with_the_setting_to_change(tmp_path: Path) -> None:
    node = tmp_path / "node"
    group = {
        "feed": "NGRID",
        "leg": 70,
        "dropped": 12,
        "asked_bytes": 16_777_216,
        "granted_bytes": 425_984,
        "needed_bytes": 5_000_000,
        "limit_bytes": 212_992,
        "priority": None,
        "standing": "normal",
        "demotions": 0,
    }
    fine = group | {"feed": "WARN", "dropped": 0, "granted_bytes": 33_554_432}
    status = {"hubs": [], "files": None, "groups": [group, fine]}
    node.write_text(f"#!/bin/sh\necho '{json.dumps(status)}'\n")
    node.chmod(0o755)
    _, drops, well = doctor.findings_of_site(node, tmp_path)
    assert (drops.state, well.state, well.remedy) == ("weak", "ok", "")
    assert drops.sentence.startswith("the group of NGRID: 12 datagrams dropped for want of room")
    assert "set net.core.rmem_max=5000000 at the site (it is 212992)" in drops.remedy


def test_transports_that_are_not_there_are_named_with_their_reasons(settings: Settings) -> None:
    sentences = [sentence for state, sentence in found("transports", settings) if state == "ok"]
    assert [sentence.split()[0] for sentence in sentences] == ["rdma", "100g", "mptcp"]
