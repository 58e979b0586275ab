"""Commands with irreversible removals ask for confirmation, and refuse if nobody can answer."""

import sys
from typing import Any

import httpx
import pytest
import typer

from downburst_app.cli import main

REMOVING = {
    ("feeds", "remove", "NGRID"): "feeds/NGRID",
    ("sites", "remove", "unl.edu"): "sites/unl.edu",
    ("sites", "revoke", "unl.edu"): "sites/unl.edu/credentials",
    ("users", "remove", "anna"): "users/anna",
    ("upstreams", "remove", "unidata"): "upstreams/unidata",
    ("tokens", "revoke", "3"): "access-tokens/3",
    ("circuits", "cancel", "17"): "circuits/17",
}


class Deleted(list[str]):
    def request(self, method: str, url: str, **_given: Any) -> httpx.Response:
        assert method == "DELETE"
        self.append(url.partition("/v1/")[2])
        answer = {"revoked": 1, "name": "radar"}
        return httpx.Response(200, json=answer, request=httpx.Request(method, url))


@pytest.fixture
def deleted(monkeypatch: pytest.MonkeyPatch) -> Deleted:
    stand_in = Deleted()
    monkeypatch.setattr(httpx.Client, "request", staticmethod(stand_in.request))
    return stand_in


def run(*argv: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(argv))
    return int(str(end.value.code or 0))


@pytest.mark.parametrize(("command", "path"), REMOVING.items())
def test_without_a_terminal_it_takes_the_option(
    deleted: Deleted, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], path: str
) -> None:
    assert run(*command) == 2
    said = capsys.readouterr().err
    assert "nothing was changed" in said
    assert "repeat the command with --yes" in said
    assert deleted == []
    assert run(*command, "--yes", "--json") == 0
    assert deleted == [path]


def test_on_a_terminal_it_asks_and_goes_by_the_answer(deleted: Deleted, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    answers = [False, True]

    def confirm(question: str, **_given: Any) -> bool:
        asked.append(question)
        return answers.pop(0)

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(typer, "confirm", confirm)
    assert run("feeds", "remove", "NGRID") == 2
    assert (asked, deleted) == (["Remove feed NGRID, its products and the subscriptions to it?"], [])
    assert run("feeds", "remove", "NGRID") == 0
    assert deleted == ["feeds/NGRID"]


def test_a_dry_run_changes_nothing_and_asks_nothing(deleted: Deleted) -> None:
    assert run("circuits", "cancel", "17", "--dry-run", "--json") == 0
    assert deleted == ["circuits/17"]
