"""What of a feed a site may take: held to at once, whatever it subscribes, and named to whoever asks why."""

from integration.conftest import RunningHub, Starter, until


def put(hub: RunningHub, name: str) -> None:
    hub.ask("PUT", f"/v1/feeds/NGRID/products/{name}", 201, content=name.encode())


def names(starter: Starter) -> list[bytes]:
    return sorted(starter.received("near.example").values())


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
