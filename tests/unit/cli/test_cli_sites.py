"""`downburst sites set`: the request to the hub, and the words of its answer."""

from inspect import signature
from typing import Any

import httpx
import pytest

from downburst_app.cli import main
from downburst_app.cli.sites.changing import set_site
from downburst_contract.sites import SiteChange

PLACE = {"text": "Oslo", "latitude": 59.9, "longitude": 10.7}
SITE = {"site": "oslo", "data_connections": 4, "multicast_interface": "", "active": True, "place": PLACE}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    requests: list[Any] = []

    def request(_: httpx.Client, method: str, url: str, **given: Any) -> httpx.Response:
        requests.append((method, str(url), given.get("json")))
        return httpx.Response(200, json=SITE | given.get("json", {}), request=httpx.Request(method, "http://hub"))

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


@pytest.mark.parametrize(
    ("options", "body"),
    [
        (("--organisation", "Met", "--contact", "noc@met"), {"organisation": "Met", "contact": "noc@met"}),
        (("--no-multicast", "--active"), {"multicast": False, "active": True}),
        (("--inactive",), {"active": False}),
        (("--access-rate-bps", "1e9"), {"access_rate_bps": 1e9}),
        (("--no-access-rate", "--no-ldm-host"), {"access_rate_bps": None, "ldm_host": None}),
        (("--ldm-host", "^ldm$"), {"ldm_host": "^ldm$"}),
        (("--ceiling", "50"), {"ceiling_mbps_by_hour": [50.0] * 24}),
        (("--ceiling", ",".join(map(str, range(24)))), {"ceiling_mbps_by_hour": [float(rate) for rate in range(24)]}),
        (("--ceiling", "none"), {"ceiling_mbps_by_hour": []}),
        (
            ("--attachment", "urn:ogf:network:a:100-199"),
            {"circuit_attachment": {"port": "urn:ogf:network:a", "first_vlan": 100, "last_vlan": 199}},
        ),
        (("--attachment", "none"), {"circuit_attachment": None}),
        (("--data-connections", "auto"), {"data_connections": None}),
    ],
)
def test_every_property_is_set(asked: list[Any], options: tuple[str, ...], body: dict[str, Any]) -> None:
    assert run(*options) == 0
    assert asked == [("PATCH", asked[0][1], body)]


def test_a_part_of_the_place_keeps_the_others(asked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--latitude", "60.1", "--contact", "noc") == 0
    assert [method for method, _, _ in asked] == ["GET", "PATCH"]
    assert asked[1][2] == {"contact": "noc", "place": PLACE | {"latitude": 60.1}}
    assert capsys.readouterr().out == "site oslo changed: contact, place\n"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--ceiling", "1,2"), "24 with commas"),
        (("--ceiling", "nan"), "24 with commas"),
        (("--ceiling", "-1"), "24 with commas"),
        (("--attachment", "eth1"), "PORT:FIRST-LAST"),
        (("--attachment", "eth1:200-100"), "the lower one first"),
        (("--data-connections", "17"), "auto or 0 to 16"),
        (("--ldm-host", "a", "--no-ldm-host"), "exclude each other"),
    ],
)
def test_values_that_can_not_be_are_refused_before_the_hub_is_asked(
    asked: list[Any], capsys: pytest.CaptureFixture[str], options: tuple[str, ...], sentence: str
) -> None:
    assert run(*options) == 2
    assert sentence in capsys.readouterr().err
    assert asked == []


def test_the_command_sets_all_that_the_api_changes() -> None:
    elsewhere = {"allow", "limits"}
    """By `sites allow` and `sites limit`."""
    options = {"place", "latitude", "longitude", "no_access_rate", "no_ldm_host", "site", "hub", "as_json"}
    renamed = {"ceiling": "ceiling_mbps_by_hour", "attachment": "circuit_attachment"}
    taken = {renamed.get(name, name) for name in signature(set_site).parameters} - options
    assert taken | {"place"} == set(SiteChange.model_fields) - elsewhere
