"""Relays of a whole hub: enrolment by a token, revocation, the configuration file, a restart, and bad input.

The relay's session is that of any site, so a receiver stands here for the relay's process.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import RunningHub, Starter, until

ADD = ("relays", "add", "campus", "--address", "127.0.0.1:7379", "--fan-out", "group", "--feeds", "NGRID")
BAD = [
    (("x", "--address", "nowhere"), "'nowhere' is not the address of a relay"),
    (("x",), "relay x carries nothing"),
    (("x", "--address", "a:1", "--sites", "x"), "relay x can't be behind itself"),
    (("x", "--address", "a:1", "--sites", "unknown"), "there is no site 'unknown'"),
    (("x", "--fan-out", "group", "--feeds", "UNKNOWN"), "UNKNOWN"),
    (("here", "--address", "a:1"), "site 'here' has subscriptions, and a relay takes no products"),
    (("core", "--address", "a:1", "--sites", "campus"), ""),
    (("campus", "--address", "a:1", "--sites", "core"), "relay campus would be behind itself, by way of core"),
]


@pytest.fixture
def hub(starter: Starter) -> RunningHub:
    """A hub with a site that takes a feed."""
    hub = starter.hub()
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    hub.ask("POST", "/v1/sites", 201, json={"site": "here"})
    hub.ask("POST", "/v1/sites/here/subscriptions", 201, json={"feed": "NGRID"})
    return hub


def done(hub: RunningHub, *argv: str) -> str:
    ran = hub.command(*argv)
    assert ran.returncode == 0, ran
    return ran.stdout


def shown(hub: RunningHub) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done(hub, "relays", "show", "campus", "--json"))
    return found


def enrolled(hub: RunningHub, starter: Starter, tmp_path: Path) -> None:
    token = tmp_path / "campus.token"
    said = done(hub, *ADD, "--sites", "here", "-o", str(token))
    assert f"--token-file {token}" in said
    starter.receiver(hub, "campus", token.read_text().strip())
    until("the relay is connected", lambda: shown(hub)["connected"])


def test_a_relay_enrols_by_its_token_and_ends_with_its_credential(
    hub: RunningHub, starter: Starter, tmp_path: Path
) -> None:
    enrolled(hub, starter, tmp_path)
    assert "relay, connected" in done(hub, "sites", "list")
    assert "never-enrolled" not in done(hub, *ADD, "--json"), "a change makes no further token"
    done(hub, "sites", "revoke", "campus", "--yes")
    until("its session has ended", lambda: not shown(hub)["connected"])
    assert [fault for fault in hub.ask("GET", "/v1/overview")["faults"] if fault["site"] == "campus"] == []
    done(hub, "relays", "remove", "campus", "--yes")
    assert hub.command("sites", "show", "campus").returncode == 2
    changes = hub.ask("GET", "/v1/audit", params={"kind": "relay"})["items"]
    assert [one["action"] for one in reversed(changes)] == ["added", "changed", "removed"]


@pytest.mark.all
def test_the_configuration_of_relays_survives_a_file_and_a_restart(
    hub: RunningHub, starter: Starter, tmp_path: Path
) -> None:
    done(hub, *ADD, "--sites", "here")
    file = tmp_path / "hub.yaml"
    file.write_text(done(hub, "export"))
    assert "nothing to change" in done(hub, "diff", "-f", str(file), "--prune")
    before = shown(hub)
    done(hub, "relays", "remove", "campus", "--yes")
    assert "add relay campus" in hub.command("diff", "-f", str(file), "--prune").stdout
    done(hub, "apply", "-f", str(file), "--prune", "--yes")
    assert hub.stop() == 0
    again = starter.hub(http=hub.http, sites=hub.sites, data_dir=hub.directory)
    kept = ("relay", "address", "fan_out", "sites", "feeds")
    assert {name: shown(again)[name] for name in kept} == {name: before[name] for name in kept}
    assert json.loads(done(again, "relays", "log", "campus", "--json")) == []


@pytest.mark.all
def test_bad_input_is_one_sentence_and_changes_nothing(hub: RunningHub) -> None:
    done(hub, *ADD, "--sites", "here")
    before = shown(hub)
    for argv, said in BAD:
        ran = hub.command("relays", "add", *argv)
        assert ran.returncode == (2 if said else 0), ran
        assert said in ran.stderr, argv
        assert ran.stderr.count("\n") == bool(said), ran.stderr
    assert shown(hub) == before
    assert [one["relay"] for one in json.loads(done(hub, "relays", "list", "--json"))] == ["campus", "core"]
    refused = hub.command("subscriptions", "add", "campus", "NGRID")
    assert refused.returncode == 2
    assert "'campus' is a relay, which takes no products" in refused.stderr
    for command in ("show", "log", "remove"):
        ran = hub.command("relays", command, "unknown", *(("--yes",) if command == "remove" else ()))
        assert (ran.returncode, "there is no relay 'unknown'" in ran.stderr) == (2, True), ran
