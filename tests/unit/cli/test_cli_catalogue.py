"""`downburst bridges search`, and sources that a record of a catalogue describes."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from downburst.foundation.errors import BadInput
from downburst_app.cli import main
from downburst_app.cli.bridges import bridges as module
from downburst_app.cli.bridges import catalogue
from kit.wis2.services import CATALOGUE, Collection
from kit.wis2.services import catalogue as made_catalogue
from unit.wis2.test_catalogue_records import CHANNEL, GLOBAL, ID, link, record

URL = "https://gdc.example"


class Hub:
    """Takes what is sent to it."""

    sent: tuple[Any, ...] = ()

    def __init__(self, _: str) -> None: ...

    def ask(self, *parts: str, json: Any = None) -> Any:
        Hub.sent = *parts, json
        return {"advice": [], "logins": [], "takes_recommended": False} | (json or {})


@pytest.fixture
def gdc(monkeypatch: pytest.MonkeyPatch) -> Collection:
    """A catalogue behind the client of the command."""
    found = made_catalogue()

    def answer(request: httpx.Request) -> httpx.Response:
        if found.failures:
            return httpx.Response(int(str(found.failures.pop())))
        if request.url.path == CATALOGUE:
            return httpx.Response(200, stream=httpx.ByteStream(found.answer(dict(request.url.params))))
        one = [one for one in found.features if request.url.path == f"{CATALOGUE}/{one['id']}"]
        return (
            httpx.Response(200, stream=httpx.ByteStream(json.dumps(one[0]).encode())) if one else httpx.Response(404)
        )

    monkeypatch.setattr(catalogue, "_client", lambda: httpx.Client(transport=httpx.MockTransport(answer)))
    monkeypatch.setattr(module, "HubClient", Hub)
    return found


def run(*argv: str) -> int | str | None:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as end:
        main(["bridges", *argv])
    return end.value.code


def test_a_search_goes_over_all_pages(gdc: Collection, capsys: pytest.CaptureFixture[str]) -> None:
    gdc.features = [record(GLOBAL, metadata_id=f"{ID}{number}") for number in range(120)]
    assert not run("search", "synop", "--catalogue", URL, "--most", "110", "--json")
    found = json.loads(capsys.readouterr().out)
    assert [one["metadata_id"] for one in found] == [f"{ID}{number}" for number in range(110)]
    assert found[0]["brokers"] == [{"url": "mqtts://globalbroker.example:8883", "user": "everyone"}]
    assert not run("search", "synop", "--catalogue", URL, "--most", "2", "--bbox", "5,47,15,55")
    assert "120 datasets fit, and 2 are listed" in capsys.readouterr().out
    assert not run("search", "radar", "--catalogue", URL)
    assert capsys.readouterr().out.strip() == "the catalogue has no dataset for 'radar'"


def test_a_source_takes_brokers_and_topics_of_a_record(gdc: Collection, capsys: pytest.CaptureFixture[str]) -> None:
    channel = CHANNEL.replace("core", "recommended")
    brokers = [link(f"mqtts://everyone:everyone@b{number}.example:8883", channel) for number in range(3)]
    gdc.features = [record(*brokers, policy="recommended")]
    assert not run("add", "dwd", "--feed", "WIS2", "--dataset", ID, "--catalogue", URL)
    *_, sent = Hub.sent
    urls = [one["url"] for one in sent["brokers"]]
    assert urls == ["mqtts://b0.example:8883", "mqtts://b1.example:8883"]
    assert (sent["topics"], sent["takes_recommended"]) == ([channel], True)
    assert "may need a login: bridges change dwd --logins FILE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--dataset", ID], "--catalogue https://"),
        (["--dataset", ID, "--catalogue", "gdc.example"], "is no address of a catalogue"),
        (["--dataset", f"{ID}x", "--catalogue", URL], "check the metadata id"),
        (["--dataset", ID, "--catalogue", URL], "names no broker"),
        ([], "give --broker and --topic, or --dataset"),
    ],
)
def test_sources_without_brokers_are_refused(
    gdc: Collection, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    gdc.features = [record()]
    assert run("add", "dwd", "--feed", "WIS2", *arguments)
    assert words in capsys.readouterr().err.replace("\n", " ")


def test_a_catalogue_that_fails_is_one_sentence(gdc: Collection, capsys: pytest.CaptureFixture[str]) -> None:
    gdc.failures = [503]
    assert run("search", "synop", "--catalogue", URL)
    assert "gdc.example answers with status 503" in capsys.readouterr().err.replace("\n", " ")


def test_logins_come_from_a_file(gdc: Collection, tmp_path: Path) -> None:
    logins = [{"host": "data.example", "token": "abc"}]
    file = tmp_path / "logins.json"
    file.write_text(json.dumps(logins))
    assert not run("change", "dwd", "--logins", str(file), "--no-replay")
    assert Hub.sent == ("PATCH", "v1", "bridges", "dwd", {"logins": logins, "replay_url": None})
    for text in ("{}", "x"):
        file.write_text(text)
        with pytest.raises(BadInput, match="has an example"):
            module._logins_in(file)
