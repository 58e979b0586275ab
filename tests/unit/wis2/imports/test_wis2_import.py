"""`downburst import wis2`: its output, and commands that a hub takes."""

import json
import shlex
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml  # type: ignore[import-untyped]

from downburst.wis2.imports.result import stated
from downburst_app.cli import main
from downburst_contract.bridges.publishers import PublisherChange, PublisherWanted
from downburst_contract.bridges.sources import BridgeWanted
from unit.wis2.imports.test_wis2_box import BOX, DATASET
from unit.wis2.imports.test_wis2_sources_imported import CONFIG, SHIP, SYNOP


def ended(*argv: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(argv))
    return int(end.value.code or 0)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A wis2box with its downloader, and a wis2downloader of which all is stated."""
    monkeypatch.chdir(tmp_path)
    own = {"broker_username": "anna", "broker_password": "hidden", "topics": [SHIP]}
    texts = {
        "wis2box.env": f"{BOX}DOWNLOAD_BROKER_HOST=gb.example\nDOWNLOAD_BROKER_PORT=443\n",
        "synop.yml": DATASET,
        ".session-info.json": json.dumps({"topics": {SYNOP: "obs"}, "client_id": "a"}),
        "config.json": json.dumps(CONFIG | own),
    }
    for name, text in texts.items():
        Path(name).write_text(text)
    return list(texts)


def test_it_prints_what_the_files_become(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("import", "wis2", *files) == 0
    shown = capsys.readouterr()
    found = yaml.safe_load(shown.out)
    assert list(found) == ["bridges", "publishers", "feeds", "commands", "carried", "no_equivalent"]
    assert {one["bridge"] for one in found["bridges"]} == {"wis2", "obs"}
    assert {one["at"] for one in found["no_equivalent"]} >= {"wis2box.env:7", "synop.yml:12"}
    count = len(found["no_equivalent"])
    assert shown.out.startswith("# What the files say. Nothing was changed.")
    assert shown.err == (
        f"nothing was changed; {count} lines have no equivalent: see no_equivalent, each with its reason\n"
    )
    assert not any(text in shown.out for text in ("hidden", "hid#den"))


def test_programs_get_one_document(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("import", "wis2", "--json", *files, files[0]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert list(found) == ["bridges", "publishers", "feeds", "commands", "carried", "no_equivalent"]
    assert len(found["commands"]) == 7, "a file that is named twice is read once"
    assert not any(text in shown.out for text in ("hidden", "hid#den"))


def test_a_hub_takes_each_command(
    files: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ended("import", "wis2", "--json", *files) == 0
    found = json.loads(capsys.readouterr().out)
    for one in [broker for bridge in found["bridges"] for broker in bridge["brokers"]] + [
        publisher["broker"] for publisher in found["publishers"]
    ]:
        if "password_file" in one:
            Path(one["password_file"]).write_text("secret\n")
    asked: list[tuple[str, Any]] = []

    def request(method: str, url: str, **given: Any) -> httpx.Response:
        asked.append((url.partition("/v1/")[2], given["json"]))
        answer = {"advice": [], "dataset": "", "feed": "", "class": "", "retention_hours": 24, "retention_bytes": 1}
        answer |= {"takes_recommended": False, "logins": []}
        return httpx.Response(200, json=answer, request=httpx.Request(method, url))

    monkeypatch.setattr(httpx.Client, "request", staticmethod(request))
    for command in found["commands"]:
        assert ended(*shlex.split(command)[1:]) == 0, command
    sources = [BridgeWanted(**body).to_model() for path, body in asked if path == "bridges"]
    assert [(one.name, one.feed, one.filters) for one in sources] == [
        (one["bridge"], one["feed"], tuple(one["topics"])) for one in found["bridges"]
    ]
    assert {one.brokers[0].password for one in sources} == {"secret", "everyone"}
    (publisher,) = [PublisherWanted(**body).to_model() for path, body in asked if path == "publishers"]
    (change,) = [PublisherChange(**body) for path, body in asked if path == "publishers/synop"]
    described = change.applied_to(publisher).dataset
    assert described is not None
    assert described.bounds == (-10.5, -20.0, 30.0, 40.0)
    feeds = [body for path, body in asked if path == "feeds"]
    assert [(one["feed"], one["retention_hours"]) for one in feeds] == [(one["feed"], 24.0) for one in found["feeds"]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("broker: [", "a.yml:1: this is not YAML"),
        ('{"broker": 1', "a.yml:1: this is not JSON"),
        ("WIS2BOX_URL", "a.yml is no configuration of wis2box"),
        ("WIS2BOX_URL=a\nWIS2BOX", "a.yml:2: this is neither NAME=VALUE nor a comment"),
        ("PATH=/bin", "a.yml has no variable of wis2box or wis2downloader"),
        ("roles: SUBSCRIBER", "a.yml is no configuration of wis2box"),
        (None, "a.yml can't be read (No such file or directory); name a file that can"),
    ],
)
def test_a_file_that_can_not_be_read_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str | None,
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path("a.yml").write_text(text)
    assert ended("import", "wis2", "a.yml") == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"downburst: {sentence}")
    assert shown.err.count("\n") == 1


def test_files_have_a_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("import", "wis2", *(str(tmp_path / str(one)) for one in range(201))) == 2
    assert "at most 200 are read" in capsys.readouterr().err


def test_files_of_which_all_has_an_equivalent_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text(json.dumps(CONFIG | {"topics": [SYNOP]}))
    assert ended("import", "wis2", str(tmp_path / "a.json")) == 0
    assert capsys.readouterr().err == "nothing was changed; every statement has an equivalent\n"


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("URL", "mqtt://a:b c@d@gb.example/x", "URL=mqtt://…@gb.example/x"),
        ("URL", "mqtt://${A}:${B}@gb.example", "URL=mqtt://…@gb.example"),
        ("URL", "a:b@gb.example", "URL=…@gb.example"),
        ("URL", "https://gb.example", "URL=https://gb.example"),
        ("MAIL", "a@b.example", "MAIL=a@b.example"),
        ("DB_PASSWD", "a", "DB_PASSWD=…"),
        ("apiKey", "a", "apiKey=…"),
        ("AWS_ACCESS_KEY_ID", "a", "AWS_ACCESS_KEY_ID=…"),
        ("A", "a\nb" * 100, "A=" + ("a b" * 100)[:120] + "…"),
    ],
)
def test_statements_are_shown_without_secrets(name: str, value: str, line: str) -> None:
    assert stated(name, value, "=") == line
