"""`downburst sites set`: the request to the hub, and the words of its answer."""

from typing import Any

import httpx
import pytest

from downburst_app.cli import main

SITE = {"site": "oslo", "data_connections": 4, "multicast_interface": ""}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    requests: list[Any] = []

    def request(_: httpx.Client, method: str, url: str, **given: Any) -> httpx.Response:
        requests.append((method, str(url), given["json"]))
        return httpx.Response(200, json=SITE | given["json"], request=httpx.Request(method, "http://hub"))

    monkeypatch.setattr(httpx.Client, "request", request)
    return requests


def run(*argv: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["sites", "set", "oslo", *argv])
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("interface", "words"),
    [
        ("amt", "site oslo joins groups through an AMT relay"),
        ("amt:192.0.2.1", "site oslo joins groups through an AMT relay"),
        ("eth1", "site oslo joins groups on eth1"),
        ("", "site oslo joins groups on an interface of its own choice"),
    ],
)
def test_the_interface_of_groups_is_set(
    asked: list[Any], capsys: pytest.CaptureFixture[str], interface: str, words: str
) -> None:
    assert run("--multicast-interface", interface) == 0
    assert capsys.readouterr().out.strip() == words
    ((method, url, body),) = asked
    assert (method, url.endswith("/v1/sites/oslo")) == ("PATCH", True)
    assert body == {"multicast_interface": interface}


def test_both_are_set_at_the_same_time_and_nothing_is_refused(
    asked: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--data-connections", "3", "--multicast-interface", "amt") == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert asked[0][2] == {"data_connections": 3, "multicast_interface": "amt"}
    assert run() == 2
    assert "name what changes" in capsys.readouterr().err
