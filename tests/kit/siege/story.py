"""The siege itself: its parties, its events, and the conditions that must hold afterwards."""

import json
import secrets
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kit.node import SiteNode
from kit.patience import wait_for
from kit.siege.people import PRODUCT_EACH_S, HubUser, Source, end
from kit.soak import memory_bytes
from kit.swarm import Swarm
from kit.whole_hub import WholeHub

Alarm = dict[str, Any]

FEEDS = ("NGRID", "HDS", "WARN")
HONEST = {"near.example": FEEDS, "far.example": ("NGRID", "HDS")}
HOSTILE = {f"bad-{number}.example": ("NGRID", "HDS") for number in range(6)}
"""The third feed is not theirs; they know of it."""


@dataclass
class Siege:
    """A hub, two honest sites and hostile ones in `home`."""

    home: Path
    seed: int
    new_sites: int = 0
    honest: dict[str, SiteNode] = field(default_factory=dict)
    memory: dict[str, list[int]] = field(default_factory=dict)
    """Bytes of the hub's processes: after a hundred sessions, and at the end."""

    def __post_init__(self) -> None:
        network = f"239.78.{self.seed % 250}.0/24"
        self.hub = WholeHub(self.home / "hub", multicast_network=network, more=_MORE)

    def begin(self) -> None:
        """Starts all honest parties, and enrols the hostile sites."""
        self.hub.start()
        for feed in FEEDS:
            self.hub.ask(
                "POST", "/v1/feeds", json={"feed": feed, "class": "grid", "retention_bytes": RETENTION_BYTES}
            )
        for name, feeds in (HONEST | HOSTILE).items():
            self._add(name, feeds)
        for name in HONEST:
            self.honest[name] = self._receiver(name).start()
        self._enrol_hostile()
        self.hub.ask("PUT", "/v1/feeds/HDS/pin", json={"transport": "multicast"})
        wait_for("the honest sites", lambda: set(HONEST) <= self._connected(), 60)
        self.source = Source(self.hub, FEEDS, self.seed)
        self.user = HubUser(self.hub, _QUESTIONS)
        self.source.start()
        self._wait_for_clocks()
        self.user.start()
        self._former = {alarm["alarm"] for alarm in self._alarms()}

    def end(self) -> None:
        """Ends all running processes."""
        end(*(thread for thread in (getattr(self, "source", None), getattr(self, "user", None)) if thread))
        for site in self.honest.values():
            site.stop()
        if self.hub.process.poll() is None:
            self.hub.stop()

    def attack(self, sessions: int) -> dict[str, Any]:
        """Plays this number of hostile sessions, enrolling new sites during them. Returns the attackers' summary."""
        if sessions > SETTLING_SESSIONS:
            self._fill()
        settling = min(sessions, SETTLING_SESSIONS)
        summary = self._play(0, settling)
        self._look_at_memory()
        if sessions > settling:
            rest = self._play(settling, sessions - settling)
            self._look_at_memory()
            summary = {**rest, **{name: rest[name] + summary[name] for name in _SUMMED}}
        return summary

    def _fill(self) -> None:
        """Lets honest traffic bring the hub to its full size: full logs, and a full repair window for the group."""
        self.source.put_at_least(2 * RETENTION_BYTES)
        self.source.wait_for_more(int(2 * REPAIR_S / PRODUCT_EACH_S))

    def _play(self, first: int, sessions: int) -> dict[str, Any]:
        which = ["--hostile", str(sessions), "--first", str(first), "--seed", str(self.seed)]
        swarm = Swarm(self.hub.sites, self.home / "enrolled", [*which, *self._feeds_known()]).start()
        enrolled = 0
        while swarm.process.poll() is None:
            done = swarm.lines[-1]["sessions"] if swarm.lines else 0
            if done >= enrolled * sessions / ENROLMENTS:
                self._want_credentials()
                self.a_new_site_is_let_in()
                enrolled += 1
            time.sleep(0.1)
        summary = swarm.stop()
        assert summary.get("summary"), f"the attackers broke off: {summary}"
        return summary

    def a_new_site_is_let_in(self) -> None:
        """A newly created site gets a token, is let in and receives a product."""
        self.new_sites += 1
        name = f"new-{self.new_sites}.example"
        self._add(name, ("NGRID",))
        site = self._receiver(name).start()
        try:
            wait_for(f"enrolment of {name}", lambda: name in self._connected(), 60)
            site.wait_received(1, 60)
        finally:
            site.stop()
            self.hub.ask("DELETE", f"/v1/sites/{name}")

    def wait_until_quiet(self, *, clocks_known: bool = True) -> None:
        """The source pauses, honest sites have everything, and the ledger has all their reports.

        Where a session is new, its first products have no latency: ``clocks_known`` leaves latencies out.
        """
        self.source.rest()
        for name, feeds in HONEST.items():
            expected = self.source.of(feeds)
            self.honest[name].wait_received(len(expected), 60)
        wrong: list[str] = []

        def is_right() -> bool:
            wrong[:] = self.wrong_figures(clocks_known=clocks_known)
            return not wrong

        try:
            wait_for("right figures of the honest sites", is_right, 20)
        except AssertionError as error:
            raise AssertionError("\n".join([str(error), *wrong])) from None

    def wrong_figures(self, *, clocks_known: bool) -> list[str]:
        """Differences between the hub's figures of honest sites and the sites' own: one sentence each."""
        wrong = []
        shown = {site["site"]: site for site in self.hub.ask("GET", "/v1/overview")["sites"]}
        for name, feeds in HONEST.items():
            received = self.honest[name].received()
            if received != self.source.of(feeds):
                wrong.append(f"{name} has not what was acknowledged: {len(received)} products")
            own = Counter(feed for feed, _ in received)
            wrong += self._wrong_session(name, shown[name], own)
            wrong += self._wrong_latency(name, own) if clocks_known else []
            lost = self.hub.ask("GET", "/v1/deliveries", params={"site": name})["items"]
            wrong += [f"{name} is said to have lost {lost}"] if lost else []
        return wrong

    def blamed(self) -> list[Alarm]:
        """Alarms since the siege began, open and ended, that are about no hostile site.

        Alarms about speed are left out: a shared machine is slow by itself.
        """
        since = [alarm for alarm in self._alarms() if alarm["alarm"] not in self._former]
        return [
            alarm
            for alarm in since
            if not str(alarm["site"] or "").startswith(("bad-", "new-")) and alarm["kind"] not in _OF_SPEED
        ]

    def blamed_hostile(self) -> list[Alarm]:
        """Alarms, open and ended, about hostile sites."""
        return [alarm for alarm in self._alarms() if str(alarm["site"] or "").startswith("bad-")]

    def open_alarms(self, site: str) -> list[Alarm]:
        """The open alarms of this site."""
        items: list[Alarm] = self.hub.ask("GET", "/v1/alarms", params={"site": site})["items"]
        return items

    def pids(self) -> dict[str, int]:
        """The hub's processes."""
        node = self.hub.node_pids()
        return {"the hub": self.hub.process.pid} | ({"its node": node[0]} if node else {})

    def outcry(self) -> list[str]:
        """Lines of the hub's log that no value from outside may cause."""
        marks = ("Traceback", "never retrieved", "panicked", "can't be understood", "dropped:")
        return [line[:400] for line in self.hub.log().splitlines() if any(mark in line for mark in marks)][:20]

    def _alarms(self) -> list[Alarm]:
        items: list[Alarm] = self.hub.ask("GET", "/v1/alarms", params={"ended": True, "limit": 1000})["items"]
        return items

    def _wrong_session(self, name: str, shown: dict[str, Any], own: Counter[str]) -> list[str]:
        wrong = []
        if shown["stored"] != own.total():
            wrong.append(f"the hub counts {shown['stored']} products at {name}, which has {own.total()}")
        if not shown["connected"] or shown["behind_products"] != 0:
            wrong.append(f"{name} is connected and has everything; shown is {json.dumps(shown)}")
        heads = {feed: max((at for of, at in self.source.acknowledged if of == feed), default=0) for feed in own}
        stands = {feed["feed"]: feed["settled_to"] for feed in shown["feeds"]}
        return wrong + [
            f"{name} has {feed} up to {head}; shown is {stands.get(feed)}"
            for feed, head in heads.items()
            if stands.get(feed) != head
        ]

    def _wrong_latency(self, name: str, own: Counter[str]) -> list[str]:
        counted: Counter[str] = Counter()
        wrong = []
        query = {"site": name, "kind": "distribution", "minutes": 10_000}
        for row in self.hub.ask("GET", "/v1/latency", params=query):
            counted[row["feed"]] += row["count"]
            if not row["max"] < WORST_LATENCY_MS:
                wrong.append(f"{name} has got {row['feed']} after {row['max']} ms, at the worst")
        expected = {feed: count - self.unmeasured[name, feed] for feed, count in own.items()}
        if counted != expected:
            wrong.append(f"the latencies of {name} are of {dict(counted)} products; it measured {expected}")
        return wrong

    def _wait_for_clocks(self) -> None:
        """Products before the first measurement of a site's clock have no latency; their number is recorded."""
        self.source.wait_for_more(len(FEEDS))
        wait_for("the honest sites' clocks", lambda: all(self._latencies(name) for name in HONEST), 60)
        self.source.rest()

        def settled() -> bool:
            stored = {site["site"]: site["stored"] for site in self.hub.ask("GET", "/v1/overview")["sites"]}
            return all(stored[name] == len(self.source.of(feeds)) for name, feeds in HONEST.items())

        wait_for("all receipts of the first products", settled, 60)
        # Counted only now: a batch has both figures, and it is kept.
        self.unmeasured = self._unmeasured()
        self.source.go_on()

    def _unmeasured(self) -> dict[tuple[str, str], int]:
        found = {}
        for name, feeds in HONEST.items():
            counted = self._latencies(name)
            for feed in feeds:
                found[name, feed] = len(self.source.of((feed,))) - counted[feed]
        return found

    def _latencies(self, name: str) -> Counter[str]:
        counted: Counter[str] = Counter()
        query = {"site": name, "kind": "distribution", "minutes": 10_000}
        for row in self.hub.ask("GET", "/v1/latency", params=query):
            counted[row["feed"]] += row["count"]
        return counted

    def _want_credentials(self) -> None:
        """Requests credentials for some hostile sites, so that they may send the messages of a replacement."""
        for name in list(HOSTILE)[:2]:
            self.hub.answer("POST", f"/v1/sites/{name}/credentials/replacement")

    def _look_at_memory(self) -> None:
        for name, pid in self.pids().items():
            self.memory.setdefault(name, []).append(memory_bytes(pid))

    def _feeds_known(self) -> list[str]:
        """Facts about other feeds that a hostile site could have learnt."""
        feeds = self.hub.ask("GET", "/v1/status")["feeds"]
        return [f"--feed={feed['feed']}:{feed['epoch']}:{feed['head']}" for feed in feeds]

    def _enrol_hostile(self) -> None:
        tokens = self.home / "hostile tokens"
        tokens.write_text("".join(self._token(name) + "\n" for name in HOSTILE))
        swarm = Swarm(self.hub.sites, tokens, ["--enrolled-file", str(self.home / "enrolled")]).start()
        try:
            swarm.wait_connected(len(HOSTILE))
        finally:
            swarm.stop()

    def _add(self, name: str, feeds: tuple[str, ...]) -> None:
        shape = {"site": name, "multicast_interface": "127.0.0.1", "allow": list(feeds)}
        self.hub.ask("POST", "/v1/sites", json=shape)
        for feed in feeds:
            self.hub.ask("POST", f"/v1/sites/{name}/subscriptions", json={"feed": feed})

    def _token(self, name: str) -> str:
        return str(self.hub.ask("POST", f"/v1/sites/{name}/tokens", json={})["token"])

    def _receiver(self, name: str) -> SiteNode:
        site = SiteNode(self.home / name, self.hub.sites)
        site.directory.mkdir(parents=True)
        site.token_file.write_text(self._token(name))
        return site

    def _connected(self) -> set[str]:
        return {site["site"] for site in self.hub.ask("GET", "/v1/overview")["sites"] if site["connected"]}


def fresh_seed() -> int:
    """A seed that is short enough to be typed."""
    return secrets.randbelow(1_000_000)


SETTLING_SESSIONS = 100
"""Until then the hub's processes find their size."""
RETENTION_BYTES = 4_000_000
"""The size of each feed's log: some 330 products, three times those of a honest site's absence."""
REPAIR_S = 5
ENROLMENTS = 3
_OF_SPEED = ("silence", "prediction", "objective")
_SUMMED = ("sessions", "let_in", "violations", "failed", "frames", "bytes")
WORST_LATENCY_MS = 60_000.0
"""A minute on a machine of this test's own: what is beyond was not measured."""

_QUESTIONS = (
    "/healthz",
    "/v1/overview",
    "/v1/sites",
    "/v1/latency",
    "/v1/alarms",
    "/v1/deliveries",
    "/v1/feeds",
    "/v1/plans",
    "/v1/status",
    "/metrics",
    *(f"/v1/sites/{name}" for name in (*HONEST, *list(HOSTILE)[:2])),
    *(f"/v1/sites/{name}/path" for name in list(HOSTILE)[:1]),
)

_MORE = f"""\
[multicast.feeds.HDS]
repair_s = {REPAIR_S}

[alarms]
look_s = 0.5
site_down_s = 5
stalled_s = 20
end_after_s = 1
"""
