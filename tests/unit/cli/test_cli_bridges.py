"""`downburst bridges show`: the state and speed of a source in a terminal."""

from typing import Any

import httpx
import pytest

from downburst_app.cli import main

BROKER: dict[str, Any] = {
    "url": "mqtts://one.example",
    "connected_at": "2026-01-01T00:00:00Z",
    "bound": 2,
    "refused": [],
    "last_at": "2026-01-01T00:01:00Z",
    "health": "good",
    "sentence": "connected",
    "messages_per_s": 33.333,
    "delay_s": 1.25,
}
SILENT = BROKER | {
    "url": "mqtts://two.example",
    "health": "warning",
    "sentence": "no message for 3 h",
    "delay_s": None,
}
PACE = {"behind_s": 12.5, "oldest_coming_at": None, "products": 40, "p50_s": 1.5, "p99_s": 9.25}
BRIDGE: dict[str, Any] = {"feed": "WIS2", "topics": ["cache/a/wis2/#"], "advice": [], "brokers": [BROKER, SILENT]}
BRIDGE |= {"replay_url": None, "logins": []}


def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], pace: dict[str, Any]) -> str:
    def request(_client: object, method: str, url: str, **_: object) -> httpx.Response:
        answer = [] if url.endswith("/centres") else BRIDGE | {"pace": pace}
        return httpx.Response(200, json=answer, request=httpx.Request(method, url))

    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.setattr(httpx.Client, "request", request)
    with pytest.raises(SystemExit) as end:
        main(["bridges", "show", "dwd"])
    assert not end.value.code
    return capsys.readouterr().out


def test_brokers_have_their_health_rate_and_delay(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(monkeypatch, capsys, PACE)
    assert "behind by 12.5 s" in text
    assert "publication to this hub's log: p50 1.5 s, p99 9.2 s, of the last 40 products" in text
    one, two = (next(line for line in text.splitlines() if name in line) for name in ("one.example", "two.example"))
    for part in ("good", "connected since 2026-01-01 00:00", "33.33", "1.2 s"):
        assert part in one
    assert "warning" in two
    assert "no message for 3 h" in two


def test_a_source_without_products_has_no_latency(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(monkeypatch, capsys, dict.fromkeys(PACE) | {"products": 0})
    assert "behind by -" in text
    assert "no product was stored since" in text
