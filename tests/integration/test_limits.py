"""Limits of a site within a feed: applied immediately, whatever it subscribes, and given as the reason on request."""

import os

import pytest

from integration.conftest import RunningHub, Starter, until
from kit.slow_line import SlowLine


def put(hub: RunningHub, name: str) -> None:
    hub.ask("PUT", f"/v1/feeds/NGRID/products/{name}", 201, content=name.encode())


def names(starter: Starter) -> list[bytes]:
    return sorted(starter.received("near.example").values())


@pytest.mark.all
def test_a_site_gets_of_a_feed_what_it_may_take_and_no_more(starter: Starter) -> None:
    hub = starter.hub()
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    hub.ask("POST", "/v1/sites", 201, json={"site": "near.example"})
    hub.ask("POST", "/v1/sites/near.example/subscriptions", 201, json={"feed": "NGRID"})
    starter.receiver(hub, "near.example", hub.ask("POST", "/v1/sites/near.example/tokens", 201)["token"])
    until("the site is connected", lambda: hub.ask("GET", "/v1/overview")["sites"][0]["connected"])
    put(hub, "XX-before")
    until("everything comes", lambda: names(starter) == [b"XX-before"])

    limited = hub.command("sites", "limit", "near.example", "NGRID", "--ok", "^YZ", "--not", "TEST")
    assert limited.returncode == 0, limited.stderr
    for name in ("XX-beyond", "YZ-TEST", "YZ-granted"):
        put(hub, name)
    until("what it may take comes", lambda: names(starter) == [b"XX-before", b"YZ-granted"])
    for name in ("XX-beyond", "YZ-TEST"):
        why = hub.command("why", name, "near.example")
        assert "denied" in why.stdout, why.stdout + why.stderr
        assert "'^YZ' and not 'TEST'" in why.stdout.replace("\n", " ")

    assert hub.command("sites", "limit", "near.example", "NGRID").returncode == 0
    put(hub, "XX-after")
    until("everything comes again", lambda: names(starter) == [b"XX-after", b"XX-before", b"YZ-granted"])


@pytest.mark.all
def test_what_waits_for_a_site_when_its_limit_narrows_does_not_go(starter: Starter) -> None:
    hub = starter.hub()
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    hub.ask("POST", "/v1/sites", 201, json={"site": "near.example"})
    hub.ask("POST", "/v1/sites/near.example/subscriptions", 201, json={"feed": "NGRID"})
    token = hub.ask("POST", "/v1/sites/near.example/tokens", 201)["token"]
    granted, others = ([os.urandom(300_000) for _ in range(16)] for _ in range(2))
    with SlowLine(hub.sites, bytes_per_s=50_000) as line:
        starter.receiver(hub, "near.example", token, address=line.address)
        until("the site is connected", lambda: hub.ask("GET", "/v1/overview")["sites"][0]["connected"])
        for number, (may, may_not) in enumerate(zip(granted, others, strict=True)):
            hub.ask("PUT", f"/v1/feeds/NGRID/products/YZ-{number}", 201, content=may)
            hub.ask("PUT", f"/v1/feeds/NGRID/products/XX-{number}", 201, content=may_not)
        until("the last one waits", lambda: states(hub)[-1] == "waiting")
        # The first of the waiting products may begin before the limit is set.
        waiting = [number for number, state in enumerate(states(hub)) if state == "waiting"][1:]
        limit = {"limits": [{"feed": "NGRID", "pattern": "^YZ"}]}
        hub.ask("PATCH", "/v1/sites/near.example", json=limit)
        line.bytes_per_s = 50_000_000
        until("what it may take comes", lambda: set(granted) <= set(names(starter)))
        put(hub, "YZ-last")
        until("the next comes", lambda: b"YZ-last" in names(starter))
        assert len(waiting) > 2, "the line was not slow"
        came = [number for number in waiting if others[number] in names(starter)]
        assert came == []
        assert {states(hub)[number] for number in waiting} == {"denied"}


def states(hub: RunningHub) -> list[str]:
    """The states of the products that the site may not have once it is limited."""

    def state(number: int) -> str:
        asked = {"product": f"XX-{number}", "site": "near.example", "limit": 1}
        (product,) = hub.ask("GET", "/v1/products/trace", params=asked)["products"]
        found: str = product["deliveries"][0]["state"]
        return found

    return [state(number) for number in range(16)]
