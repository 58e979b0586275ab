"""Credentials of receivers at a whole hub: replaced during sessions, through kills, and revoked from legs."""

import json
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.busy import Stalls
from kit.capabilities import needs
from kit.namespaces import Lab
from kit.node import SiteNode
from kit.patience import wait_for
from kit.swarm import Swarm
from kit.whole_hub import WholeHub

pytestmark = pytest.mark.system

DAY_S = 86_400
LIFETIME_S = 30.0
"""Replaced after twenty of them: a machine that is busy with other things has ten for what takes a moment."""

Put = dict[tuple[str, int], tuple[str, str]]


class Products:
    """Puts products of NGRID, and records the products due at every site."""

    def __init__(self, hub: WholeHub) -> None:
        self._hub = hub
        self.put_so_far: Put = {}

    def put(self) -> None:
        """Puts one more; a killed hub gets it after its restart."""
        name = f"product-{len(self.put_so_far)}"
        content = random.Random(name).randbytes(20_000)

        def answered() -> httpx.Response | None:
            answer = self._hub.answer("PUT", f"/v1/feeds/NGRID/products/{name}", content=content)
            return None if answer.status_code == 503 else answer

        answer = wait_for("a hub that takes products", answered)
        assert answer.is_success, answer.text
        self.put_so_far["NGRID", answer.json()["sequence"]] = (name, sha256(content).hexdigest())

    def until(self, what: str, done: Callable[[], object], seconds: float = 60.0) -> None:
        """Puts ten per second until a condition holds."""
        give_up = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < give_up, f"not within {seconds:g} s: {what}"
            self.put()
            time.sleep(0.1)

    def wait_all(self, *sites: SiteNode) -> None:
        """Waits until these sites have all products, and nothing else."""
        wait_for("all products at all sites", lambda: all(site.received() == self.put_so_far for site in sites), 60)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[WholeHub]:
    # With the node's own log lines: it alone reports the key of a leg.
    hub = WholeHub(tmp_path / "hub", multicast_network="239.78.81.0/24", arguments=["--verbose"]).start()
    hub.ask("POST", "/v1/feeds", json={"feed": "NGRID", "class": "grid"})
    yield hub
    hub.stop()


@pytest.fixture
def receive(hub: WholeHub, tmp_path: Path) -> Iterator[Callable[..., SiteNode]]:
    started: list[SiteNode] = []

    def start(name: str, *arguments: str, lifetime_s: float = LIFETIME_S) -> SiteNode:
        site = SiteNode(tmp_path / name, hub.sites, arguments=arguments)
        site.directory.mkdir()
        site.token_file.write_text(enrolment(hub, name, lifetime_s=lifetime_s))
        started.append(site.start())
        wait_for(f"a session of {name}", partial(is_connected, hub, name))
        return site

    yield start
    for site in started:
        site.stop()


def enrolment(hub: WholeHub, name: str, *, lifetime_s: float) -> str:
    """Creates a site that subscribes to NGRID, and a token for it."""
    hub.ask("POST", "/v1/sites", json={"site": name})
    hub.ask("POST", f"/v1/sites/{name}/subscriptions", json={"feed": "NGRID"})
    wanted = {"credential_days": lifetime_s / DAY_S}
    return str(hub.ask("POST", f"/v1/sites/{name}/tokens", json=wanted)["token"])


def shown(hub: WholeHub, name: str) -> dict[str, Any]:
    found: dict[str, Any] = hub.ask("GET", f"/v1/sites/{name}")
    return found


def replaced(hub: WholeHub, name: str) -> int:
    """The number of replaced credentials of a site."""
    return sum(one["replaced_at"] is not None for one in shown(hub, name)["credentials"])


def sessions(site: SiteNode) -> int:
    return site.log().count("connected site=")


def hears_a_leg(site: SiteNode) -> bool:
    return "a multicast leg is received" in site.log()


def is_connected(hub: WholeHub, name: str) -> bool:
    return bool(shown(hub, name)["connected"])


def secret_of(directory: Path) -> str:
    return str(json.loads((directory / "state" / "identity.json").read_text())["secret"])


def by_multicast(hub: WholeHub) -> None:
    hub.ask("PUT", "/v1/feeds/NGRID/pin", json={"transport": "multicast"})
    wait_for(
        "a plan by multicast", lambda: hub.ask("GET", "/v1/feeds/NGRID/plans?limit=1")[0]["transport"] == "multicast"
    )


@pytest.mark.long(43)
def test_credentials_are_replaced_in_the_session_and_no_product_is_lost(
    hub: WholeHub, receive: Callable[..., SiteNode], tmp_path: Path
) -> None:
    """By a leg as well: another key shuts out a holder of the former credential alone."""
    sites = [receive("one"), receive("two", lifetime_s=90 * DAY_S)]
    by_multicast(hub)
    for site in sites:
        wait_for("a leg that is heard", partial(hears_a_leg, site))
    stolen = tmp_path / "stolen"
    (stolen / "state").mkdir(parents=True)
    shutil.copy(sites[0].directory / "state" / "identity.json", stolen / "state")
    products = Products(hub)
    products.until("two credentials were replaced", lambda: replaced(hub, "one") >= 2, seconds=180)
    products.until("the leg took another key", lambda: "the leg takes its next key" in hub.log())
    products.wait_all(*sites)
    assert [sessions(site) for site in sites] == [1, 1], "no session was cut"
    assert "a multicast leg ended" not in sites[0].log()
    assert (replaced(hub, "one") >= 2, replaced(hub, "two")) == (True, 0)
    done = [change["action"] for change in hub.ask("GET", "/v1/audit?kind=credential&subject=one")["items"]]
    assert done.count("replaced") >= 2
    assert secret_of(sites[0].directory) != secret_of(stolen)

    thief = SiteNode(stolen, hub.sites).start()
    assert thief.process.wait(30) == 3
    assert "is not valid here (unknown or revoked)" in thief.log()
    hub.ask("POST", "/v1/sites/two/credentials/replacement")
    products.until("the other one was asked", lambda: replaced(hub, "two") == 1)
    products.wait_all(*sites)
    assert [sessions(site) for site in sites] == [1, 1]


def test_a_site_that_was_away_for_longer_than_its_credential_is_told_what_to_do(
    hub: WholeHub, receive: Callable[..., SiteNode]
) -> None:
    site = receive("one", lifetime_s=3.0)
    wait_for("one that was replaced", lambda: replaced(hub, "one") >= 1)
    assert site.stop() == 0
    time.sleep(3.5)  # Waits for the expiry of a credential, which no event reports.
    site.start()
    assert site.process.wait(30) == 3
    assert "has expired; ask the hub's operator for a new token (downburst sites token one)" in site.log()
    site.token_file.write_text(hub.ask("POST", "/v1/sites/one/tokens", json={})["token"])
    site.start()
    wait_for("a session again", partial(is_connected, hub, "one"))


@pytest.mark.nightly
def test_kills_at_any_moment_lock_no_site_out(hub: WholeHub, receive: Callable[..., SiteNode]) -> None:
    seed = int(os.environ.get("DOWNBURST_SEED", random.randrange(2**32)))
    print(f"replay: DOWNBURST_SEED={seed} pytest -s tests/system/test_credentials.py -m nightly")
    dice = random.Random(seed)
    site = receive("one", lifetime_s=90 * DAY_S)
    site.wait_begun("NGRID")
    products = Products(hub)
    for _ in range(KILLS):
        hub.ask("POST", "/v1/sites/one/credentials/replacement")
        time.sleep(dice.random() * 1.5)
        match dice.choice(["site", "node", "hub"]):
            case "site":
                site.kill()
                site.start()
            case "node":
                hub.kill_node()
            case _:
                hub.kill_api()
                hub.start()
        wait_for("a session", partial(is_connected, hub, "one"), 60)
        assert site.process.poll() is None, site.log()[-2000:]
        products.put()
    # The hub resumes a replacement that a kill interrupted, after a minute at most.
    wait_for("one credential that is good", lambda: len(good(hub, "one")) == 1, 90)
    products.wait_all(site)
    assert good(hub, "one") == [sha256(secret_of(site.directory).encode()).hexdigest()]
    assert replaced(hub, "one") >= KILLS // 4


def good(hub: WholeHub, name: str) -> list[str]:
    kept = [one for one in shown(hub, name)["credentials"] if not one["revoked_at"] and not one["replaced_at"]]
    return [str(one["sha256"]) for one in kept]


@pytest.mark.root
def test_a_revoked_receiver_that_listens_on_reads_nothing_a_second_later(tmp_path: Path) -> None:
    """It keeps the leg's key, stays in the group, and receives every datagram; the others miss nothing."""
    needs("root", "netns", "veth", "bridge")
    with Lab(["hub", "revoked", "one", "two"]) as lab:
        hub = hub_of(lab, tmp_path)
        address, names = f"{lab.address('hub')}:7370", ("one", "two")
        sites = [SiteNode(tmp_path / name, address, prefix=lab.command(name, [])) for name in names]
        swarm = insider(lab, hub, tmp_path)
        try:
            for name, site in zip(names, sites, strict=True):
                site.directory.mkdir()
                site.token_file.write_text(enrolment(hub, name, lifetime_s=90 * DAY_S))
                site.start()
                wait_for("a session", partial(is_connected, hub, name))
            swarm.start()
            by_multicast(hub)
            products = Products(hub)
            products.until("datagrams that it opens", lambda: swarm.lines and swarm.lines[-1]["opened"] > 50)
            revoke(hub, products, swarm)
            products.wait_all(*sites)
        finally:
            swarm.stop()
            for site in sites:
                site.stop()
            hub.stop()


def hub_of(lab: Lab, directory: Path) -> WholeHub:
    hub = WholeHub(
        directory / "hub",
        http="127.0.0.1:7371",
        sites="0.0.0.0:7370",
        prefix=lab.command("hub", ["env", "DOWNBURST_MULTICAST__INTERFACE=eth0"]),
        inside=partial(lab.inside, "hub"),
    ).start()
    hub.ask("POST", "/v1/feeds", json={"feed": "NGRID", "class": "grid"})
    return hub


def insider(lab: Lab, hub: WholeHub, directory: Path) -> Swarm:
    """A receiver that continues to listen to the group, whatever its hub orders."""
    tokens = directory / "tokens"
    tokens.write_text(enrolment(hub, "revoked", lifetime_s=90 * DAY_S) + "\n")
    arguments = ["--insider", lab.address("revoked")]
    prefix = lab.command("revoked", [])
    return Swarm(f"{lab.address('hub')}:7370", tokens, arguments=arguments, prefix=prefix)


def revoke(hub: WholeHub, products: Products, swarm: Swarm) -> None:
    with Stalls() as stalls:
        asked = time.monotonic()
        assert hub.ask("DELETE", "/v1/sites/revoked/credentials")["revoked"] == 1
        wait_for("the end of its session", lambda: not shown(hub, "revoked")["connected"])
        cut_s = time.monotonic() - asked
    print(f"the session was cut {cut_s:.2f} s after the operator asked for it")
    assert cut_s < 1.0 + stalls.lost_s()
    products.until("a second", lambda: time.monotonic() > asked + 1.0)
    count = len(swarm.lines)
    products.until("another count", lambda: len(swarm.lines) >= count + 2)
    before = swarm.lines[-1]
    products.until("datagrams that it hears", lambda: swarm.lines[-1]["heard"] >= before["heard"] + 100)
    assert swarm.lines[-1]["opened"] == before["opened"], "it reads what is sent a second after its revocation"


KILLS = 16
