"""The command line: every command explains itself; refusals are one sentence and a code."""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from downburst_app.cli import COMMANDS, main
from downburst_app.cli.feeds import resend


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Callable[[httpx.Response], list[tuple[str, str]]]:
    """Answers every request with the same response and records the requests."""

    def answering(answer: httpx.Response) -> list[tuple[str, str]]:
        asked: list[tuple[str, str]] = []

        def request(method: str, url: str, **given: Any) -> httpx.Response:
            for _ in given.get("content", ()):
                pass
            asked.append((method, url))
            answer.request = httpx.Request(method, url)
            return answer

        monkeypatch.setattr(httpx.Client, "request", staticmethod(request))
        return asked

    return answering


def ended(*argv: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(argv))
    return int(end.value.code or 0)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(command, "--help") == 0
    shown = capsys.readouterr().out
    assert "Example" in shown or "Commands" in shown


@pytest.mark.parametrize(
    "group", ["feeds", "sites", "subscriptions", "plans", "resends", "ports", "circuits", "tcp-profiles", "relays"]
)
def test_a_group_without_a_command_shows_them(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(group) == 2
    assert "list" in capsys.readouterr().out


def test_usage_errors_end_with_two() -> None:
    assert ended("nope") == 2
    assert ended("put") == 2


def test_a_problem_is_said_in_its_own_sentence(
    hub: Callable[[httpx.Response], list[tuple[str, str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    for status, code in ((404, 2), (507, 1)):
        hub(httpx.Response(status, json={"detail": "there is no such thing; make one"}))
        assert ended("feeds", "list") == code
        assert capsys.readouterr().err == "downburst: there is no such thing; make one\n"


def test_what_is_no_hub_is_said(
    hub: Callable[[httpx.Response], list[tuple[str, str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    hub(httpx.Response(404, text="<html>"))
    assert ended("feeds", "list") == 2
    assert "is this a Downburst hub?" in capsys.readouterr().err


def test_no_hub_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def request(*_: Any, **__: Any) -> httpx.Response:
        raise httpx.ConnectError("refused")

    monkeypatch.setattr(httpx.Client, "request", staticmethod(request))
    assert ended("status", "--hub", "http://127.0.0.1:9") == 1
    assert "no hub answers at http://127.0.0.1:9" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (("put", "NGRID", "../x", __file__), "'..'"),
        (("put", "two words", "x", __file__), "letters, digits and"),
        (("put", "NGRID", "x", "/none"), "is not a file"),
        (("put", "NGRID", "x", __file__, __file__), "{name}"),
        (("feeds", "set", "NGRID"), "nothing to change"),
        (("feeds", "set", "NGRID", "--no-ldm", "--ldm-pattern", "x"), "--no-ldm excludes"),
        (("hub", "--settings", "/none.toml"), "does not exist"),
        (("hub", "--http", "here"), "not HOST:PORT"),
        (("hub", "--data-dir", __file__), "is a file"),
        (("node-path", "--settings", "/none.toml"), "does not exist"),
    ],
)
def test_bad_input_is_refused_before_anything_is_asked(
    argv: tuple[str, ...],
    sentence: str,
    hub: Callable[[httpx.Response], list[tuple[str, str]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = hub(httpx.Response(500))
    assert ended(*argv) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said.strip().splitlines()) == 1
    assert asked == []


@pytest.mark.parametrize(
    ("product_id", "encoded"), [("a/b %", "a%2Fb%20%25"), (".", "%2E"), ("W\u00e4rme", "W%C3%A4rme")]
)
def test_an_id_is_one_encoded_part_of_the_address(
    product_id: str,
    encoded: str,
    hub: Callable[[httpx.Response], list[tuple[str, str]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = {"feed": "A|B", "product_id": product_id, "size": 1, "stored": True, "sequence": 7}
    asked = hub(httpx.Response(201, json=answer))
    main_ended_well("put", "A|B", product_id, __file__, "--hub", "http://hub")
    assert asked == [("PUT", f"http://hub/v1/feeds/A%7CB/products/{encoded}")]
    assert "stored as A|B 7" in capsys.readouterr().out


def test_a_token_file_is_for_its_owner_alone(
    hub: Callable[[httpx.Response], list[tuple[str, str]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub(httpx.Response(201, json={"token": "dbt1.secret", "expires_at": "soon"}))
    file = tmp_path / "a.token"
    main_ended_well("sites", "token", "a", "-o", str(file))
    assert file.read_text() == "dbt1.secret\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "dbt1.secret" not in capsys.readouterr().out


def main_ended_well(*argv: str) -> None:
    assert ended(*argv) == 0


def test_a_resend_is_waited_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[tuple[str, str, Any]] = []
    looks = iter(["waiting", "waiting", "done"])

    def request(method: str, url: str, **given: Any) -> httpx.Response:
        asked.append((method, url, given.get("json")))
        body = {"id": 7, "site": "unl.edu", "feed": "NGRID", "from": "a", "to": "b", "products": 3, "bytes": 99}
        return httpx.Response(200, json=body | {"expired": 1, "state": next(looks)})

    monkeypatch.setattr(httpx.Client, "request", staticmethod(request))
    monkeypatch.setattr(resend, "LOOK_S", 0.0)
    options = ("--site", "unl.edu", "--feed", "NGRID", "--from", "2h", "--pattern", "^A", "--wait")
    assert ended("resend", *options, "--hub", "http://h") == 0
    assert asked[0] == (
        "POST",
        "http://h/v1/resends",
        {"site": "unl.edu", "feed": "NGRID", "from": "2h", "pattern": "^A"},
    )
    assert [one[:2] for one in asked[1:]] == [("GET", "http://h/v1/resends/7")] * 2
    said = "resend 7: NGRID from a to b to unl.edu is done: 3 products, 99 bytes, 1 had left the hub's log\n"
    assert capsys.readouterr().out == said


NOTHING_WRONG: dict[str, object] = {
    "status": {"sentence": "All 2 sites receive their feeds within the objectives", "detail": None, "counts": {}},
    "incidents": [],
}
SILENCE = {"until": "2026-01-31T13:00:00+00:00", "by": "anna"}


@pytest.mark.parametrize(
    ("probes", "line"),
    [
        ({"ledger": "ok", "node": "ok"}, "health: ledger, node ok"),
        ({"ledger": "ok", "node": "no answer within 10 s"}, "! health: node: no answer within 10 s"),
    ],
)
def test_status_shows_the_probes_of_health(
    probes: dict[str, str],
    line: str,
    hub: Callable[[httpx.Response], list[tuple[str, str]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    about = {"name": "hub", "version": "1", "node": {"running": True, "restarts": 0}, "probes": probes}
    hub(httpx.Response(200, json={"hub": about, "feeds": [], "sites": []} | NOTHING_WRONG))
    assert ended("status") == 0
    assert line in capsys.readouterr().out.splitlines()


def test_alarms_are_listed_worst_first_with_counts_and_silenced_ones_last(
    hub: Callable[[httpx.Response], list[tuple[str, str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = [
        _wrong(1, "critical", "unl.edu is away", SILENCE),
        _wrong(2, "critical", "ucar.edu is away", None),
        _wrong(3, "warning", "NGRID is silent", None),
    ]
    hub(httpx.Response(200, json={"items": wrong}))
    assert ended("alarms", "list") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "1 critical, 1 warning; 1 silenced" in shown
    places = [shown.index(word) for word in ("ucar.edu", "NGRID", "unl.edu")]
    assert places == sorted(places)
    assert "anna" in shown


def test_status_begins_with_the_sentence_and_the_incidents(
    hub: Callable[[httpx.Response], list[tuple[str, str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    counts = {"critical": 1, "warning": 0, "information": 0, "silenced": 1}
    status = {"sentence": "psu.edu has been down for 6 min", "detail": "1 of 2 sites is fine.", "counts": counts}
    about = {"name": "hub", "version": "1", "node": {"running": True, "restarts": 0}, "probes": {}}
    incidents = [_incident("psu.edu is down", None), _incident("unl.edu is down", SILENCE)]
    answer = {"hub": about, "status": status, "incidents": incidents, "feeds": [], "sites": []}
    hub(httpx.Response(200, json=answer))
    assert ended("status") == 0
    assert capsys.readouterr().out.splitlines()[:7] == [
        "psu.edu has been down for 6 min.",
        "1 of 2 sites is fine.",
        "1 critical; 1 silenced",
        "! critical, 2026-01-31T12:00:00: psu.edu is down. No answer. 7 products wait here.",
        "  Call it.",
        "(silenced until 2026-01-31T13:00 UTC by anna) critical, 2026-01-31T12:00:00: unl.edu is down. No answer. "
        "7 products wait here.",
        "hub 1: node running, restarts 0",
    ]


def _incident(title: str, silence: dict[str, str] | None) -> dict[str, object]:
    words = {
        "title": title,
        "cause": "No answer.",
        "affected": {"words": "7 products wait here."},
        "next": "Call it.",
    }
    return words | {"severity": "critical", "since": "2026-01-31T12:00:00Z", "silence": silence, "over": False}


def _wrong(number: int, severity: str, sentence: str, silence: dict[str, str] | None) -> dict[str, object]:
    at = "2026-01-31T12:00:00+00:00"
    as_alarm = {"alarm": number, "kind": "x", "since": at, "next_step": "look", "ended_at": None}
    return as_alarm | {"severity": severity, "sentence": sentence, "silence": silence, "at": at, "next": "look"}
