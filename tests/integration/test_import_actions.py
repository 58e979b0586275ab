"""`downburst import ldm --pqact-conf`: the node's own reader judges pqact.conf, so a site acts as shown."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from downburst_app.cli import main
from kit.node import node_binary

SITE = Path(__file__).parents[1] / "unit" / "ldm" / "site"


@pytest.fixture(autouse=True)
def built_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOWNBURST_NODE", node_binary())


def imported(capsys: pytest.CaptureFixture[str], *paths: Path) -> dict[str, Any]:
    files = [word for path in paths for word in ("--pqact-conf", str(path))]
    with pytest.raises(SystemExit) as end:
        main(["import", "ldm", "--ldmd-conf", str(SITE / "ldmd.conf"), *files, "--json"])
    shown = capsys.readouterr()
    assert not end.value.code, shown.err
    found: dict[str, Any] = json.loads(shown.out)
    return found


def of_pqact(found: dict[str, Any]) -> list[tuple[int, str]]:
    """Lines of pqact.conf that are not executed as written, with the reason."""
    lines = [one for one in found.get("no_equivalent", []) + found.get("remarks", []) if "pqact.conf:" in one["at"]]
    return [(int(one["at"].rpartition(":")[2]), one.get("why") or one["as"]) for one in lines]


def test_entries_are_shown_as_a_site_does_them(capsys: pytest.CaptureFixture[str]) -> None:
    found = imported(capsys, SITE / "pqact.conf")
    does = [one["do"] for one in found["actions"]]
    assert does == ["file", "pipe", "file", "nothing", "exec", "nothing", "file"]
    observations, metar, grids, _, made, rest, graphs = found["actions"]
    path = r"data/surface/(\1:yyyy)(\1:mm)\1\2_sao.wmo"
    assert (observations["feed"], observations["options"], observations["path"]) == ("WMO", ["close"], path)
    assert metar["command"][:4] == ["decoders/dcmetar", "-v", "1", "-e"]
    assert metar["at"] == f"{SITE / 'pqact.conf'}:5"
    assert grids["options"] == ["overwrite", "log"]
    assert (made["options"], made["command"]) == (["wait"], ["/usr/local/bin/made", "\\1"])
    assert rest["pattern"] is None
    assert graphs["at"] == f"{SITE / 'more_pqact.conf'}:1"
    assert [line for line, _ in of_pqact(found)] == [12], "DBFILE"


def test_finding_21_import_takes_what_a_node_takes_and_names_what_it_sets_aside(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rules = tmp_path / "pqact.conf"
    rules.write_bytes(
        b"# M\xfcnchen\n"
        b"IDS\t^a\tFILE\t-shut -close one\n"
        b"IDS\t^b\tFIEL\ttwo\n"
        b"IDS\t^(c\tFILE\tthree\n"
        b"IDS\t^d\tPIPE\t-nodata -quick decode\n"
    )
    found = imported(capsys, rules)
    assert [(one["do"], one.get("options")) for one in found["actions"]] == [
        ("file", ["close"]),
        ("nothing", None),
        ("pipe", ["metadata", "nodata"]),
    ]
    told = of_pqact(found)
    assert [line for line, _ in told] == [3, 4, 2, 5]
    assert "use NOOP" in told[0][1]
    assert "a group is not closed at character 2" in told[1][1]
    assert "FILE has no option -shut, so it is ignored" in told[2][1]
    checked = subprocess.run(
        [node_binary(), "actions", "check", str(rules)], capture_output=True, text=True, check=False, timeout=60
    )
    assert checked.returncode == 1
    assert f"{rules}:3: " in checked.stdout
    for _, why in told:
        assert why in checked.stdout


def test_finding_26_import_warns_of_patterns_that_differ_from_those_of_the_network(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rules = tmp_path / "pqact.conf"
    rules.write_text("IDS\t^(..)\\1\tFILE\ttwice\nIDS\t^\\d\tFILE\tdigits\nIDS\t(KW|KWBC)\tFILE\t\\1\n")
    told = dict(of_pqact(imported(capsys, rules)))
    assert sorted(told) == [1, 2]
    assert "the back-reference at character 6" in told[1]
    assert "is the letter d" in told[2]


def test_finding_26_import_asks_the_node_which_patterns_of_ldmd_conf_a_hub_has_otherwise(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    conf = tmp_path / "ldmd.conf"
    conf.write_text(
        "REQUEST IDS ^S[AP] up.example.edu\n"
        "REQUEST HDS ^(.).\\1 up.example.edu\n"
        "REQUEST NGRID ^[[=a=]] up.example.edu\n"
        "REQUEST PPS ^\N{LATIN CAPITAL LETTER A WITH DIAERESIS}. up.example.edu\n"
        "ALLOW IDS ^ldm\\d\\.example\\.edu$ .*\n"
    )
    with pytest.raises(SystemExit) as end:
        main(["import", "ldm", "--ldmd-conf", str(conf), "--json"])
    assert not end.value.code
    found = json.loads(capsys.readouterr().out)
    assert [one["feeds"] for one in found["ldm_sources"]] == ["IDS", "PPS"]
    why = {int(one["at"].rpartition(":")[2]): one["why"] for one in found["no_equivalent"]}
    assert sorted(why) == [2, 3, 5]
    assert "a back-reference, which is not offered at character 6" in why[2]
    assert "depends on a locale" in why[3]
    assert "write [0-9]" in why[5]
    differing = [one["as"] for one in found["remarks"] if one["at"].endswith(":4")]
    assert differing
    assert "LDM matches the bytes" in differing[0]


def test_a_file_that_cannot_be_read_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as end:
        main(["import", "ldm", "--ldmd-conf", str(SITE / "ldmd.conf"), "--pqact-conf", str(tmp_path / "gone")])
    assert end.value.code == 2
    assert "gone can't be read" in capsys.readouterr().err
