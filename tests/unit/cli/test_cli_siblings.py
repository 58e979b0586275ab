"""`downburst siblings`: requests to the hub, the text of its answers, and refusals before any request."""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from downburst_app.cli import main

SITE: dict[str, Any] = {
    "site": "unl.edu",
    "exchange": {
        "address": "ldm.unl.edu:7380",
        "upload_bytes_per_second": 10_000_000,
        "upload_bytes_per_day": 50_000_000_000,
        "set_by": "anna",
        "set_at": "2026-01-01T00:00:00Z",
    },
    "saved": [{"feed": "NGRID", "products": 1_234, "bytes": 5_000_000}],
    "saved_bytes": 5_000_000,
}


@dataclass
class Asked:
    site: dict[str, Any] = field(default_factory=lambda: dict(SITE))
    requests: list[tuple[str, str, Any]] = field(default_factory=list)

    def request(self, method: str, url: str, **given: Any) -> httpx.Response:
        path = url.partition("/v1/")[2].partition("?")[0]
        self.requests.append((method, path, given.get("json")))
        answer: Any = [self.site] if path == "siblings" else self.site
        if method == "DELETE":
            return httpx.Response(204, request=httpx.Request(method, url))
        return httpx.Response(200, json=answer, request=httpx.Request(method, url))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    monkeypatch.setenv("COLUMNS", "250")
    stand_in = Asked()
    monkeypatch.setattr(httpx.Client, "request", staticmethod(stand_in.request))
    return stand_in


def run(*argv: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["siblings", *argv])
    return int(str(end.value.code or 0))


def test_an_exchange_is_switched_on_with_its_ceilings_and_the_sentence_about_addresses(
    asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("on", "unl.edu", "--address", "ldm.unl.edu:7380", "--upload", "80M", "--gigabytes", "50") == 0
    body = {
        "address": "ldm.unl.edu:7380",
        "upload_bytes_per_second": 10_000_000,
        "upload_bytes_per_day": 50_000_000_000,
    }
    assert asked.requests == [("PUT", "sites/unl.edu/siblings", body)]
    assert "it learns their addresses, and they learn its address" in capsys.readouterr().out
    assert run("on", "unl.edu", "--json") == 0
    assert asked.requests[-1] == ("PUT", "sites/unl.edu/siblings", {})


def test_a_rate_without_a_unit_is_refused_before_any_request(asked: Asked) -> None:
    assert run("on", "unl.edu", "--upload", "80") != 0
    assert asked.requests == []


def test_an_exchange_is_switched_off(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("off", "unl.edu") == 0
    assert asked.requests == [("DELETE", "sites/unl.edu/siblings", None)]
    assert "site unl.edu exchanges nothing with other sites" in capsys.readouterr().out


def test_the_list_shows_ceilings_and_bytes_saved(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list") == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("unl.edu", "ldm.unl.edu:7380", "80 Mb/s", "50 GB", "5 MB"))
    asked.site |= {"exchange": None}
    assert run("list") == 0
    assert "off" in capsys.readouterr().out
    assert run("list", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["saved_bytes"] == 5_000_000


def test_one_site_is_shown_by_feed(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "unl.edu") == 0
    said = capsys.readouterr().out
    assert "site unl.edu: ldm.unl.edu:7380; uploads at most 80 Mb/s, 50 GB a day" in said
    assert "1,234" in said
    asked.site |= {"exchange": SITE["exchange"] | {"address": None}, "saved": []}
    assert run("show", "unl.edu") == 0
    assert "address of its session" in capsys.readouterr().out
    assert run("show", "unl.edu", "--json") == 0
