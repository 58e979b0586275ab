"""`bridges password` and `publishers password`: the request, and passwords that would be lost."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from downburst_app.cli import main

OPEN = {"url": "mqtts://open.example", "user": "everyone", "mqtt": 5}
OWN = {"url": "mqtts://own.example", "user": "unl", "mqtt": 311}
OTHER = {"url": "mqtts://other.example", "user": "unl", "mqtt": 5}


class Hub:
    def __init__(self) -> None:
        self.brokers = [OPEN, OWN]
        self.changes: list[Any] = []

    def request(self, method: str, url: str, **given: Any) -> httpx.Response:
        if method == "PATCH":
            self.changes.append((url.partition("/v1/")[2], given["json"]))
        answer = {"brokers": [one | {"health": "good"} for one in self.brokers], "broker": self.brokers[-1]}
        return httpx.Response(200, json=answer, request=httpx.Request(method, url))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    stand_in = Hub()
    monkeypatch.setattr(httpx.Client, "request", staticmethod(stand_in.request))
    return stand_in


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text("new one\n")
    return file


def run(*argv: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(one) for one in argv])
    return int(ended.value.code or 0)


def test_brokers_with_a_user_get_the_password_and_open_ones_stay(
    hub: Hub, secret: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("bridges", "password", "dwd", "--password-file", secret) == 0
    assert hub.changes == [("bridges/dwd", {"brokers": [OPEN, OWN | {"password": "new one"}]})]
    shown = capsys.readouterr().out
    assert "mqtts://own.example" in shown
    assert "new one" not in shown


def test_a_broker_is_named_and_gets_a_user(hub: Hub, secret: Path) -> None:
    hub.brokers = [OPEN]
    assert run("bridges", "password", "dwd", "--password-file", secret, "--user", "a", "--broker", OPEN["url"]) == 0
    assert hub.changes == [("bridges/dwd", {"brokers": [OPEN | {"user": "a", "password": "new one"}]})]


def test_a_password_that_the_hub_does_not_show_is_not_lost(
    hub: Hub, secret: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.brokers = [OWN, OTHER]
    assert run("bridges", "password", "dwd", "--password-file", secret, "--broker", OWN["url"]) == 2
    assert "the password of mqtts://other.example would be lost" in capsys.readouterr().err
    assert hub.changes == []
    assert run("bridges", "password", "dwd", "--password-file", secret) == 0
    assert [one["password"] for one in hub.changes[0][1]["brokers"]] == ["new one"] * 2


def test_a_source_without_users_is_refused(hub: Hub, secret: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hub.brokers = [OPEN]
    assert run("bridges", "password", "dwd", "--password-file", secret) == 2
    assert "give --user (mqtts://open.example)" in capsys.readouterr().err


def test_a_publisher_has_one_broker(hub: Hub, secret: Path) -> None:
    assert run("publishers", "password", "synop", "--password-file", secret) == 0
    assert hub.changes == [("publishers/synop", {"broker": OWN | {"password": "new one"}})]


@pytest.mark.parametrize(
    ("content", "sentence"), [(b" \n", "is empty"), (b"\xff", "is no text"), (None, "can't be read")]
)
def test_a_file_without_a_password_is_refused_before_the_hub_is_asked(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, sentence: str
) -> None:
    file = tmp_path / "bad"
    if content is not None:
        file.write_bytes(content)
    assert run("publishers", "password", "synop", "--password-file", file) == 2
    assert sentence in capsys.readouterr().err
    assert hub.changes == []
