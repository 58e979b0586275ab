"""`downburst import ldm`: every line is declared or reported as having no equivalent."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from downburst.ldm.carried import settings_text
from downburst.ldm.declared import declare
from downburst.ldm.judged import Judged
from downburst.ldm.lines import read_lines
from downburst.ldm.server_file import read_server_file
from downburst.ldm.volumes import MEGABYTES_PER_HOUR, SMALLEST_LOG_BYTES
from downburst.settings.hub import load_settings
from downburst_app.cli import main
from downburst_app.cli.ldm import importing
from downburst_app.cli.ldm.yaml_text import yaml_text
from downburst_app.play.idd_mix import IDD_2024

SITE = Path(__file__).parent / "site"
ALL = ["import", "ldm", "--ldmd-conf", str(SITE / "ldmd.conf")]


@pytest.fixture(autouse=True)
def no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the node's check of patterns; the integration tests ask a real node."""
    monkeypatch.setattr(importing, "judged_patterns", lambda patterns: {})


def ended(*argv: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(argv))
    return int(end.value.code or 0)


def imported(tmp_path: Path, text: str) -> dict[str, Any]:
    (tmp_path / "ldmd.conf").write_text(text)
    return declare(read_server_file(tmp_path / "ldmd.conf")).document()


def test_realistic_files_become_one_declaration(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(*ALL, "--registry", str(SITE / "registry.xml")) == 0
    shown = capsys.readouterr()
    found = yaml.safe_load(shown.out)
    assert found["settings"] == {
        "origin": "ldm.example.edu",
        "ldm.listen": ["0.0.0.0:388"],
        "ldm.rtstats": "rtstats.unidata.ucar.edu",
    }
    assert {one["max_age_s"] for one in found["ldm_sources"]} == {3600}
    assert [one["feed"] for one in found["feeds"]][:3] == ["PPS", "DDS", "HDS"]
    assert {one["feed"]: one["class"] for one in found["feeds"]}["CONDUIT"] == "grid"
    conduit = [one for one in found["ldm_sources"] if one["feeds"] == "CONDUIT"]
    assert [(one["source"], one["pattern"], one["upstreams"]) for one in conduit] == [
        ("conduit", "[05]$", ["idd.unidata.ucar.edu", "idd.unl.edu:3880"]),
        ("conduit-2", "[16]$", ["idd.unidata.ucar.edu"]),
    ]
    assert found["ldm_accepts"][1] == {
        "feeds": "EXP",
        "pattern": "^rtstats",
        "host": r"\.unidata\.ucar\.edu$",
        "at": f"{SITE / 'ldmd.conf'}:19",
    }
    assert "downburst apply -f" in shown.out
    count = len(found["no_equivalent"])
    assert (
        shown.err
        == f"nothing was changed; {count} lines have no equivalent: see no_equivalent, each with its reason\n"
    )


def test_sites_get_the_feeds_that_the_first_line_gives_them() -> None:
    found = declare(read_server_file(SITE / "ldmd.conf")).document()
    sites = {one["site"]: one for one in found["sites"]}
    assert list(sites) == ["ldm.met.psu.edu", "data.rap.ucar.edu", "ldm.-.edu"]
    penn = {one["feed"]: one for one in sites["ldm.met.psu.edu"]["subscriptions"]}
    assert penn["IDS"] == {"feed": "IDS", "pattern": ".*", "not_pattern": "^SECRET"}, "the first line that knows it"
    assert penn["CONDUIT"] == {"feed": "CONDUIT", "pattern": ".*"}, "a later one, for other feeds"
    assert sites["ldm.met.psu.edu"]["ldm_host"] == r"^ldm\.met\.psu\.edu$"
    assert sites["ldm.-.edu"]["ldm_host"] == r"^ldm.*\.edu$", "a pattern that names no single host"


def test_what_has_no_equivalent_is_told_with_a_reason_and_its_line() -> None:
    judged = {r"/p(N0R|N0Q)(\d+)": Judged(refused="\\d is not offered")}
    found = declare(read_server_file(SITE / "ldmd.conf"), judged=judged).document()["no_equivalent"]
    why = {one["line"].split()[0] + " " + one["line"].split()[1]: one for one in found if " " in one["line"]}
    assert "actions" in why["EXEC pqact"]["why"]
    assert "systemd" in why["EXEC /opt/local/bin/watchdog"]["why"]
    assert "planned" in why["MULTICAST NGRID"]["why"]
    assert why["EXEC pqact"]["at"] == f"{SITE / 'ldmd.conf'}:5"
    patterns = [one["why"] for one in found if one["line"] == r"/p(N0R|N0Q)(\d+)"]
    assert patterns == ["\\d is not offered"]


def test_finding_20_every_line_is_carried_over_or_named() -> None:
    lines = read_lines(SITE / "ldmd.conf") + read_lines(SITE / "allow.conf")
    statements = [spot for spot, line in lines if line.split("#")[0].strip() and "INCLUDE" not in line]
    document = declare(read_server_file(SITE / "ldmd.conf")).document()
    named = {at for part in document.values() if isinstance(part, list) for one in part for at in _spots(one)}
    assert {str(spot) for spot in statements} <= named
    (local,) = [one for one in document["no_equivalent"] if "localhost" in one["line"]]
    assert local["at"] == f"{SITE / 'allow.conf'}:1"
    assert "downburst's need no line" in local["why"]


def test_finding_20_every_key_of_the_registry_is_carried_over_or_named(tmp_path: Path) -> None:
    document = declare(read_server_file(SITE / "ldmd.conf"), registry=REGISTRY).document()
    named = [one["line"] for part in ("remarks", "no_equivalent") for one in document[part]]
    assert sorted(line for line in named if " = " in line) == sorted(f"{k} = {v}" for k, v in REGISTRY.items())
    reasons = {one["line"]: one["why"] for one in document["no_equivalent"]}
    assert all("no setting of a hub corresponds to it" not in why for why in reasons.values()), reasons
    file = tmp_path / "hub.toml"
    file.write_text(settings_text(document["settings"]))
    settings = load_settings(file, data_dir=tmp_path)
    assert settings.origin == "ldm.example.edu"
    assert settings.ldm.listen == ("192.0.2.1:3880",)
    assert (settings.ldm.max_clients, settings.ldm.rtstats) == (300, "rtstats.unidata.ucar.edu")
    assert {one["max_age_s"] for one in document["ldm_sources"]} == {1800}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("/server/max-clients", "0"),
        ("/server/max-clients", "many"),
        ("/server/port", "no port"),
        ("/server/port", "99999"),
        ("/server/max-latency", "soon"),
        ("/queue/size", "default"),
        ("/not/of/this/version", "1"),
    ],
)
def test_finding_20_a_value_that_no_hub_takes_is_named_and_not_written(key: str, value: str, tmp_path: Path) -> None:
    document = declare(read_server_file(SITE / "ldmd.conf"), registry={key: value}).document()
    assert f"{key} = {value}" in [one["line"] for one in document["no_equivalent"]]
    file = tmp_path / "hub.toml"
    file.write_text(settings_text(document["settings"]))
    load_settings(file, data_dir=tmp_path)


def test_finding_20_a_queue_is_divided_by_what_feeds_bring(tmp_path: Path) -> None:
    (tmp_path / "ldmd.conf").write_text('REQUEST NEXRAD2|NGRID|IDS "." up\n')
    registry = {"/queue/size": "50G"}
    document = declare(read_server_file(tmp_path / "ldmd.conf"), registry=registry).document()
    logs = {one["feed"]: one["retention_bytes"] for one in document["feeds"]}
    assert logs["NEXRAD2"] / logs["NGRID"] == pytest.approx(10_499 / 6_993)
    assert logs["IDS"] == SMALLEST_LOG_BYTES
    assert sum(logs.values()) == pytest.approx(50e9, rel=0.01)
    (remark,) = document["remarks"]
    assert "divided by the usual volume of feeds" in remark["as"]


def test_finding_20_volumes_are_those_of_the_mix() -> None:
    mix = {feed.name: feed.megabytes_per_hour for feed in IDD_2024}
    text = mix.pop("IDS|DDPLUS")
    assert {name: MEGABYTES_PER_HOUR[name] for name in mix} == mix
    assert sum(MEGABYTES_PER_HOUR[name] for name in ("IDS", "DDS", "PPS")) == text


def test_settings_go_into_a_new_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "hub.toml"
    assert ended(*ALL, "--settings", str(file)) == 0
    assert load_settings(file).ldm.listen == ("0.0.0.0:388",)
    capsys.readouterr()
    assert ended(*ALL, "--settings", str(file)) == 2
    assert "already exists; name a new file" in capsys.readouterr().err


def _spots(entry: dict[str, Any]) -> list[str]:
    return str(entry.get("at", "")).split(", ")


def test_any_names_no_feeds(tmp_path: Path) -> None:
    found = imported(tmp_path, "REQUEST ANY .* up.example.org\nALLOW ANY ^a\\.edu$\n")
    assert "feeds" not in found
    assert "ANY names no feeds" in found["no_equivalent"][0]["why"]
    site = {"site": "a.edu", "ldm_host": r"^a\.edu$", "subscriptions": [], "at": f"{tmp_path / 'ldmd.conf'}:2"}
    assert found["sites"] == [site]
    assert "no REQUEST asks for these feeds" in found["no_equivalent"][1]["why"]


def test_a_file_that_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ldmd.conf").write_text("# nothing\n")
    assert ended("import", "ldm", "--ldmd-conf", str(tmp_path / "ldmd.conf")) == 0
    shown = capsys.readouterr()
    assert shown.out.endswith("holds no statement\n")
    assert "every statement has an equivalent" in shown.err


def test_json_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(*ALL, "--json") == 0
    as_json = json.loads(capsys.readouterr().out)
    assert ended(*ALL) == 0
    assert yaml.safe_load(capsys.readouterr().out) == as_json


def test_a_bad_line_ends_with_two_and_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ldmd.conf").write_text("REQUEST WOM .* up\n")
    assert ended("import", "ldm", "--ldmd-conf", str(tmp_path / "ldmd.conf")) == 2
    assert "ldmd.conf:1: the feed type 'WOM' can't be used: no feed is called WOM" in capsys.readouterr().err


@pytest.mark.parametrize(
    "value",
    [
        {
            "a": "yes",
            "b": "No",
            "c": "null",
            "d": "~",
            "e": "1",
            "f": "1.5",
            "g": "",
            "h": " x",
            "i": "x: y",
            "j": "# x",
        },
        {
            "a": [
                "- x",
                "x #y",
                "[a]",
                "{b}",
                "&c",
                "*d",
                "!e",
                "%f",
                "@g",
                "`h",
                "'i",
                '"j',
                "k\nl",
                "\\d",
                "ü",
                "2024-01-01",
            ]
        },
        {
            "a": [{"b": 1, "c": [{"d": [True, None, 1.5]}, {"e": {}}]}, {"f": []}],
            "on": "off",
            "g h": {"i": {"j": "0x1f"}},
        },
        {"a": [[1, [2]], "IDS|DDPLUS", "a-b", "a -b", "e/f.g"]},
    ],
)
def test_yaml_is_read_as_it_was_meant(value: dict[str, Any]) -> None:
    assert yaml.safe_load(yaml_text(value)) == value


REGISTRY = {
    "/delete-info-files": "0",
    "/hostname": "ldm.example.edu",
    "/insertion-check-interval": "300",
    "/reconciliation-mode": "do nothing",
    "/check-time/enabled": "1",
    "/check-time/limit": "10",
    "/check-time/warn-if-disabled": "1",
    "/check-time/ntpdate/command": "/usr/sbin/ntpdate",
    "/check-time/ntpdate/servers": "ntp.example.edu",
    "/check-time/ntpdate/timeout": "5",
    "/log/count": "7",
    "/log/file": "/home/ldm/var/logs/ldmd.log",
    "/log/rotate": "1",
    "/metrics/count": "4",
    "/metrics/file": "/home/ldm/var/logs/metrics.txt",
    "/metrics/files": "/home/ldm/var/logs/metrics.txt*",
    "/metrics/netstat-command": "/bin/netstat -A inet -t -n",
    "/metrics/top-command": "/usr/bin/top -b -n 1",
    "/pqact/config-path": "/home/ldm/etc/pqact.conf",
    "/pqact/datadir-path": "/home/ldm",
    "/pqsurf/config-path": "/home/ldm/etc/pqsurf.conf",
    "/pqsurf/datadir-path": "/home/ldm",
    "/queue/path": "/home/ldm/var/queues/ldm.pq",
    "/queue/size": "500M",
    "/queue/slots": "default",
    "/scour/config-path": "/home/ldm/etc/scour.conf",
    "/scour/exclude-path": "/home/ldm/etc/scour_excludes.conf",
    "/server/config-path": "/home/ldm/etc/ldmd.conf",
    "/server/ip-addr": "192.0.2.1",
    "/server/max-clients": "300",
    "/server/max-latency": "1800",
    "/server/port": "3880",
    "/server/time-offset": "3600",
    "/server/enable-anti-DOS": "TRUE",
    "/surf-queue/path": "/home/ldm/var/queues/pqsurf.pq",
    "/surf-queue/size": "2M",
    "/oess-pathname": "/home/ldm/etc/OESS-account.yaml",
    "/fmtp-retx-timeout": "300",
}
"""Every key that LDM 6.14.5 has."""
