"""TCP profiles of a whole hub: they apply to present connections, the longest prefix wins, bad ones do nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import RunningHub, Starter, until

BAD = [
    (("x", "127.0.0.1/8", "--congestion", "reno"), "has bits of a host; write 127.0.0.0/8"),
    (("x", "127.0.0.0/33", "--congestion", "reno"), "is not a prefix of addresses"),
    (("x", "10.0.0.0/8", "--send-buffer", "2GiB"), "a send buffer of 2147483648 is impossible"),
    (("x", "10.0.0.0/8", "--connections", "17"), "a number of connections of 17 is impossible"),
    (("x", "10.0.0.0/8"), "sets nothing"),
    (("x", "127.0.0.0/8", "--congestion", "reno"), "TCP profile 'all' already has the prefix 127.0.0.0/8"),
]


@pytest.fixture
def hub(starter: Starter) -> RunningHub:
    """A hub with a connected site on this machine."""
    hub = starter.hub()
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    hub.ask("POST", "/v1/sites", 201, json={"site": "here"})
    hub.ask("POST", "/v1/sites/here/subscriptions", 201, json={"feed": "NGRID"})
    starter.receiver(hub, "here", hub.ask("POST", "/v1/sites/here/tokens", 201)["token"])
    until("the site's path is known", lambda: path(hub)["congestion_control"])
    return hub


def path(hub: RunningHub) -> dict[str, Any]:
    found: dict[str, Any] = hub.ask("GET", "/v1/sites/here/path")
    return found


def applied(hub: RunningHub, profile: str) -> dict[str, Any]:
    """The profile of the site's session, as soon as it is this one."""

    def look() -> dict[str, Any] | None:
        found: dict[str, Any] | None = path(hub)["tcp_profile"]
        return found if found and found["profile"] == profile else None

    return until(f"{profile} applies", look)


def listed(hub: RunningHub) -> list[str]:
    return [one["profile"] for one in json.loads(hub.command("tcp-profiles", "list", "--json").stdout)]


def done(hub: RunningHub, *argv: str) -> str:
    ran = hub.command(*argv)
    assert ran.returncode == 0, ran
    return ran.stdout


@pytest.mark.all
def test_a_profile_applies_to_a_present_connection_and_is_taken_back(hub: RunningHub, tmp_path: Path) -> None:
    before = path(hub)["congestion_control"]
    assert path(hub)["tcp_profile"] is None
    done(hub, "tcp-profiles", "add", "all", "127.0.0.0/8", "--congestion", "reno", "--send-buffer", "1MiB")
    found = applied(hub, "all")
    assert found["state"] == "static"
    assert (found["knobs"]["congestion"], found["knobs"]["send_buffer_bytes"]) == ("reno", 2**20)
    until("the kernel uses reno", lambda: path(hub)["congestion_control"] == "reno")
    assert "all (static): reno, send buffer 1 MiB" in done(hub, "sites", "path", "here")

    done(hub, "tcp-profiles", "add", "one", "127.0.0.1/32", "--congestion", "reno", "--pacing", "80M", "--trial")
    assert applied(hub, "one")["state"] in {"base", "canary"}, "the longest prefix wins"
    assert listed(hub) == ["all", "one"]

    (tmp_path / "hub.yaml").write_text(done(hub, "export"))
    assert "nothing to change" in done(hub, "diff", "-f", str(tmp_path / "hub.yaml"), "--prune")
    done(hub, "tcp-profiles", "remove", "one")
    assert applied(hub, "all")["state"] == "static"
    done(hub, "tcp-profiles", "remove", "all")
    until("no profile applies", lambda: path(hub)["tcp_profile"] is None)
    until("the kernel's choice is back", lambda: path(hub)["congestion_control"] == before)

    changes = hub.ask("GET", "/v1/audit", params={"kind": "TCP profile"})["items"]
    by_people = [(one["action"], one["subject"]) for one in reversed(changes) if one["who"] != "hub"]
    assert by_people == [("added", "all"), ("added", "one"), ("removed", "one"), ("removed", "all")]


@pytest.mark.all
def test_a_profile_survives_a_restart_of_the_hub(hub: RunningHub, starter: Starter) -> None:
    done(hub, "tcp-profiles", "add", "all", "127.0.0.0/8", "--congestion", "reno")
    applied(hub, "all")
    assert hub.stop() == 0
    again = starter.hub(http=hub.http, sites=hub.sites, data_dir=hub.directory)
    assert applied(again, "all")["state"] == "static"


def test_an_impossible_profile_is_one_sentence_and_changes_nothing(hub: RunningHub) -> None:
    done(hub, "tcp-profiles", "add", "all", "127.0.0.0/8", "--congestion", "reno")
    before = done(hub, "tcp-profiles", "show", "all", "--json")
    for argv, said in BAD:
        refused = hub.command("tcp-profiles", "add", *argv)
        assert refused.returncode == 2, argv
        assert said in refused.stderr, argv
        assert refused.stderr.count("\n") == 1, refused.stderr
    assert listed(hub) == ["all"]
    assert done(hub, "tcp-profiles", "show", "all", "--json") == before
    assert applied(hub, "all")["knobs"]["congestion"] == "reno"
