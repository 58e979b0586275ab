"""`downburst import ldm`: every line is declared or told to have no equivalent."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from downburst.cli import main
from downburst.ldm.declared import declare
from downburst.ldm.server_file import read_server_file
from downburst.yaml_text import yaml_text

SITE = Path(__file__).parent / "site"
ALL = ["import", "ldm", "--ldmd-conf", str(SITE / "ldmd.conf"), "--pqact-conf", str(SITE / "pqact.conf")]


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
    assert found["settings"]["origin"] == "ldm.example.edu"
    assert found["settings"]["ldm.max_latency_s"] == 3600
    assert [one["feed"] for one in found["feeds"]][:3] == ["PPS", "DDS", "HDS"]
    assert {one["feed"]: one["class"] for one in found["feeds"]}["CONDUIT"] == "grid"
    assert found["feeds"][0]["retention_bytes"] == 2_000_000_000 // len(found["feeds"])
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
    assert [one["do"] for one in found["actions"]] == ["file", "pipe", "file", "noop", "exec", "dbfile", "stdiofile"]
    assert found["actions"][5]["pattern"] is None
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
    found = declare(read_server_file(SITE / "ldmd.conf")).document()["no_equivalent"]
    why = {one["line"].split()[0] + " " + one["line"].split()[1]: one for one in found if " " in one["line"]}
    assert "actions" in why["EXEC pqact"]["why"]
    assert "measures every delivery" in why["EXEC rtstats"]["why"]
    assert "systemd" in why["EXEC /opt/local/bin/watchdog"]["why"]
    assert "planned" in why["MULTICAST NGRID"]["why"]
    assert why["EXEC rtstats"]["at"] == f"{SITE / 'ldmd.conf'}:6"
    patterns = [one["why"] for one in found if one["line"] == r"/p(N0R|N0Q)(\d+)"]
    assert patterns == [r"patterns have no \d: LDM reads it as the letter itself"]


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
    assert "all of it has an equivalent" in shown.err


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
