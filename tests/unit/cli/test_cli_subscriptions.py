"""`downburst subscriptions add`: one feed or several, and feeds that are refused."""

import json
from typing import Any

import httpx
import pytest

from downburst_app.cli import main

REFUSED = {"NONE": 404, "BROKEN": 507}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    bodies: list[Any] = []

    def request(_: httpx.Client, method: str, url: str, **given: Any) -> httpx.Response:
        body = given["json"]
        bodies.append(body)
        whole = {"id": len(bodies), "feed": body["feed"], "pattern": body.get("pattern", ".*")}
        status = REFUSED.get(body["feed"], 201)
        answer = whole if status == 201 else {"detail": f"there is no feed {body['feed']}; create it"}
        return httpx.Response(status, json=answer, request=httpx.Request(method, url))

    monkeypatch.setattr(httpx.Client, "request", request)
    return bodies


def run(*argv: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["subscriptions", "add", "unl.edu", *argv])
    return int(ended.value.code or 0)


def test_several_feeds_are_subscribed_with_the_same_options(
    asked: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("NGRID", "HDS", "NGRID", "--pattern", "^nam", "--hold", "5") == 0
    options = {"pattern": "^nam", "hold_s": 5.0, "in_order": True}
    assert asked == [{"feed": "NGRID"} | options, {"feed": "HDS"} | options]
    assert capsys.readouterr().out.splitlines() == [
        "subscription 1: unl.edu takes NGRID matching ^nam",
        "subscription 2: unl.edu takes HDS matching ^nam",
    ]


@pytest.mark.parametrize(("refused", "code"), [("NONE", 2), ("BROKEN", 1)])
def test_a_refused_feed_hinders_no_other_one(
    asked: list[Any], capsys: pytest.CaptureFixture[str], refused: str, code: int
) -> None:
    assert run("NGRID", refused, "HDS") == code
    assert [body["feed"] for body in asked] == ["NGRID", refused, "HDS"]
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 2
    reason = f"{refused}: there is no feed {refused}; create it"
    assert shown.err == f"downburst: 2 of 3 subscriptions were added; not {reason}\n"


def test_all_refusals_are_named(asked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("NONE", "BROKEN") == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "0 of 2 subscriptions were added; not NONE: there is no feed NONE; create it; BROKEN: " in shown.err


def test_one_feed_is_answered_as_ever(asked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("NGRID", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"id": 1, "feed": "NGRID", "pattern": ".*"}
    assert run("NONE", "--json") == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "downburst: there is no feed NONE; create it\n")


def test_several_feeds_are_a_list_in_json(asked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("NGRID", "NONE", "--json") == 2
    assert json.loads(capsys.readouterr().out) == [{"id": 1, "feed": "NGRID", "pattern": ".*"}]
