"""Completion in the shell: commands without their modules, and names of a hub that answers in time."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from downburst_app.cli import main

ANSWERS: dict[str, Any] = {
    "feeds": [{"feed": "NGRID"}, {"feed": "IDS|DDPLUS"}, {"feed": "NEXRAD2"}],
    "sites": [{"site": "unl.edu"}, {"site": "ucar.edu"}],
    "subscriptions": [{"id": 12, "site": "unl.edu", "feed": "NGRID", "pattern": "^nam"}],
    "circuit-offers": {"offers": [{"offer": "campus"}]},
    "bridges": [{"bridge": "dwd"}],
    "users": [{"user": "anna", "role": "admin"}],
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, float]]:
    requests: list[tuple[str, float]] = []

    def request(_: httpx.Client, method: str, url: str, **given: Any) -> httpx.Response:
        requests.append((url, given["timeout"]))
        text = json.dumps(ANSWERS.get(url.partition("/v1/")[2], []))
        return httpx.Response(200, text=text, request=httpx.Request(method, url))

    monkeypatch.setattr(httpx.Client, "request", request)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return requests


def completed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, shell: str = "bash"
) -> list[str]:
    words = line.split(" ")
    monkeypatch.setattr("sys.argv", ["downburst"])
    monkeypatch.setenv("_DOWNBURST_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    with pytest.raises(SystemExit):
        main()
    return [one for one in capsys.readouterr().out.splitlines() if one]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("downburst sub", ["subscriptions"]),
        ("downburst feeds sh", ["show"]),
        ("downburst feeds show N", ["NGRID", "NEXRAD2"]),
        ("downburst sites set u", ["unl.edu", "ucar.edu"]),
        ("downburst subscriptions add un", ["unl.edu"]),
        ("downburst subscriptions add unl.edu NGRID NE", ["NEXRAD2"]),
        ("downburst subscriptions remove 1", ["12"]),
        ("downburst alarms list --site uc", ["ucar.edu"]),
        ("downburst bridges password d", ["dwd"]),
        ("downburst users remove a", ["anna"]),
        ("downburst circuits offers remove c", ["campus"]),
    ],
)
@pytest.mark.usefixtures("asked")
def test_commands_and_names_complete(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, names: list[str]
) -> None:
    assert completed(monkeypatch, capsys, line) == names


@pytest.mark.usefixtures("asked")
def test_a_name_is_escaped_where_the_shell_does_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completed(monkeypatch, capsys, "downburst feeds show I") == [r"IDS\|DDPLUS"]
    assert "IDS|DDPLUS" in completed(monkeypatch, capsys, "downburst feeds show I", "fish")


def test_the_hub_of_the_command_line_is_asked_for_a_second_at_most(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], asked: list[tuple[str, float]]
) -> None:
    assert completed(monkeypatch, capsys, "downburst feeds show --hub http://other:1 NG") == ["NGRID"]
    monkeypatch.setenv("DOWNBURST_HUB", "http://third:1")
    assert completed(monkeypatch, capsys, "downburst feeds show NG") == ["NGRID"]
    assert asked == [("http://other:1/v1/feeds", 1.0), ("http://third:1/v1/feeds", 1.0)]


@pytest.mark.parametrize("text", ["<html>", "3", '{"feed": "x"}', '[{"name": "x"}, 7]'])
def test_an_answer_of_another_program_completes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    def request(_: httpx.Client, method: str, url: str, **_given: Any) -> httpx.Response:
        return httpx.Response(200, text=text, request=httpx.Request(method, url))

    monkeypatch.setattr(httpx.Client, "request", request)
    assert completed(monkeypatch, capsys, "downburst feeds show N") == []


@pytest.mark.parametrize("error", [httpx.ConnectError("refused"), httpx.ReadTimeout("late"), None])
def test_a_hub_that_is_away_or_refuses_completes_nothing_and_prints_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception | None
) -> None:
    def request(_: httpx.Client, method: str, url: str, **_given: Any) -> httpx.Response:
        if error is not None:
            raise error
        return httpx.Response(401, json={"detail": "sign in"}, request=httpx.Request(method, url))

    monkeypatch.setattr(httpx.Client, "request", request)
    assert completed(monkeypatch, capsys, "downburst feeds show N") == []
    assert capsys.readouterr().err == ""
