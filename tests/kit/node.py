"""Runs the real node from a test: a hub driven by lines as the agent does it, and receiving sites.

Nothing here uses Python parts of the product, so a system test that uses it proves the data plane alone.
"""

import json
import os
import queue
import random
import secrets
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from downburst.foundation.file_names import decode, feed_directory
from kit import running
from kit.patience import wait_for
from kit.programs import built

Line = dict[str, Any]
Prefix = Sequence[str]


class NodeError(AssertionError):
    """A job failed; ``code`` and ``sentence`` are the node's."""

    def __init__(self, line: Line) -> None:
        super().__init__(line.get("error", line))
        self.code = str(line.get("code"))
        self.sentence = str(line.get("error"))
        self.line = line


def node_binary() -> str:
    """The built node: ``DOWNBURST_NODE``, else the workspace's."""
    return os.environ.get("DOWNBURST_NODE") or str(built("downburst-node"))


@dataclass
class HubNode:
    """A ``downburst-node hub`` and the agent's side of its lines."""

    directory: Path
    name: str = "hub"
    listen: str = "127.0.0.1:0"
    interface: str = "127.0.0.1"
    prefix: Prefix = ()
    events: list[Line] = field(default_factory=list)
    ca_sha256: str = ""
    address: str = ""
    tokens: dict[str, str] = field(default_factory=dict)
    credentials: dict[str, list[str]] = field(default_factory=dict)
    sites: dict[str, list[Line]] = field(default_factory=dict)
    interfaces: dict[str, str] = field(default_factory=dict)
    """The interfaces on which sites join groups, for sites with an interface of their own."""
    data_connections: dict[str, int] = field(default_factory=dict)
    """The number that the operator has set, for sites that have one."""
    access_rates_bps: dict[str, int] = field(default_factory=dict)
    """The access rate of each site for which the operator stated one."""
    resends: dict[str, list[Line]] = field(default_factory=dict)
    allow: dict[str, list[str]] = field(default_factory=dict)
    """The feeds that a site may have, if not all."""
    nodes: dict[str, list[Line]] = field(default_factory=dict)
    """For sites that several nodes serve: the nodes, with their feeds."""
    nodes_version: int = 0
    ways: dict[str, list[str]] = field(default_factory=dict)
    """The chains of relays by which a site is to come, if not directly."""
    siblings: dict[str, Line] = field(default_factory=dict)
    """The exchange of each site with its siblings, if it takes part."""
    ldm_hosts: dict[str, str] = field(default_factory=dict)
    """For sites that keep their LDM: the pattern of its host."""
    feeds: list[Line] = field(default_factory=list)
    options: Line = field(default_factory=dict)
    """Further fields of the first job."""
    program: str = ""
    """A binary other than that of most nodes."""
    _answers: dict[int, queue.Queue[Line]] = field(default_factory=dict)
    _next: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _telling: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> Self:
        """Starts the process; at a second start on the same directory feeds, sites and credentials are sent again."""
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "spool").mkdir(exist_ok=True)
        with (self.directory / "hub.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, self.program or node_binary(), "--log-format", "plain", "hub"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                bufsize=1,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        running.note(self.process, self._close)
        answer = self.do(
            "start",
            name=self.name,
            data_dir=str(self.directory / "data"),
            listen=[self.address or self.listen],
            origin="hub.test",
            multicast_interface=self.interface,
            batch_dir=str(self.directory / "batches"),
            batch_seconds=0.2,
            **self.options,
        )
        self.ca_sha256, self.address = answer["ca_sha256"], answer["sites_address"][0]
        if self.feeds:
            self.do("feeds", feeds=self.feeds)
        self.tell_sites()
        return self

    def do(self, action: str, **fields: Any) -> Line:
        """Sends a job and waits for its answer."""
        return self.end(self.begin(action, **fields))

    def end(self, number: int) -> Line:
        """Waits for the answer to a job that was begun."""
        answer = self._answers[number].get(timeout=120)
        del self._answers[number]
        if not answer.get("ok"):
            raise NodeError(answer)
        return answer

    def begin(self, action: str, **fields: Any) -> int:
        """Sends a job and does not wait for its answer; returns its number."""
        with self._lock:
            self._next += 1
            number = self._next
            self._answers[number] = queue.Queue()
            assert self.process.stdin
            self.process.stdin.write(json.dumps({"id": number, "do": action, **fields}) + "\n")
        return number

    def feed(self, name: str, **fields: Any) -> Line:
        """Opens a feed and returns the node's description of it."""
        line = {
            "feed": name,
            "class": "grid",
            "retention_hours": 2.0,
            "retention_bytes": 4_000_000_000,
            "durability": "process",
            "duplicate_rule": "id-and-content",
            "max_product_bytes": 1_000_000_000,
            "unicast_leg": len(self.feeds) + 1,
            **fields,
        }
        self.feeds = [known for known in self.feeds if known["feed"] != name] + [line]
        opened = self.do("feeds", feeds=self.feeds)["feeds"]
        return next(item for item in opened if item["feed"] == name)

    def site(self, name: str, *subscriptions: Line, token_file: Path | None = None) -> str:
        """Registers a site with a fresh token; returns the token."""
        self.sites[name] = list(subscriptions)
        secret = secrets.token_urlsafe(32)
        self.tokens[sha256(secret.encode()).hexdigest()] = name
        self.tell_sites()
        token = f"dbt1.{self.ca_sha256}.{secret}"
        if token_file:
            token_file.parent.mkdir(parents=True, exist_ok=True)
            token_file.write_text(token)
        return token

    def tell_sites(self) -> None:
        """Sends the node the whole set of sites; one call at a time, so that no older set follows a newer one."""
        with self._telling:
            self._tell_sites()

    def _tell_sites(self) -> None:
        self.do(
            "sites",
            sites=[
                {
                    "site": name,
                    "credentials": [
                        {"sha256": credential, "expires_us": None} for credential in self.credentials.get(name, [])
                    ],
                    "subscriptions": subscriptions,
                    "allow": self.allow.get(name, ["*"]),
                    "interface": self.interfaces.get(name, ""),
                    "active": True,
                    "data_connections": self.data_connections.get(name),
                    "access_rate_bps": self.access_rates_bps.get(name),
                    "resends": self.resends.get(name, []),
                    "ldm_host": self.ldm_hosts.get(name),
                    "via": self.ways.get(name, []),
                    "siblings": self.siblings.get(name),
                    "nodes": self.nodes.get(name, []),
                    "nodes_version": self.nodes_version,
                }
                for name, subscriptions in self.sites.items()
            ],
        )

    def put(self, feed: str, product_id: str, content: bytes, **fields: Any) -> Line:
        """Spools and ingests one product; returns the acknowledgement."""
        path = self.directory / "spool" / secrets.token_hex(8)
        path.write_bytes(content)
        return self.do("ingest", path=str(path), feed=feed, product_id=product_id, remove=True, **fields)

    def multicast(
        self, feed: str, version: int, leg: int, rate_bps: int, sites: Sequence[str], **fields: Any
    ) -> None:
        """Moves sites of a feed to a multicast leg; further fields of the leg as in the lines."""
        group, port = self.group(leg)
        line = {
            "leg": leg,
            "transport": "multicast",
            "sites": list(sites),
            "group": group,
            "port": port,
            "rate_bps": rate_bps,
            **fields,
        }
        self.do("plan", feed=feed, version=version, legs=[line])

    def group(self, leg: int) -> tuple[str, int]:
        """The group and port of a leg, of this test run's own."""
        return f"239.77.{os.getpid() % 250}.{leg % 250}", 20_000 + (os.getpid() * 7 + leg) % 30_000

    def unicast(self, feed: str, version: int, leg: int, sites: Sequence[str]) -> None:
        """Moves sites of a feed to unicast."""
        self.do("plan", feed=feed, version=version, legs=[{"leg": leg, "transport": "unicast", "sites": list(sites)}])

    def wait_event(self, seconds: float = 30.0, **wanted: Any) -> Line:
        """Waits until an event with these fields has come."""

        def found() -> Line | None:
            return next((e for e in list(self.events) if all(e.get(k) == v for k, v in wanted.items())), None)

        return wait_for(f"event {wanted}", found, seconds)

    def wait_event_after(self, place: int, seconds: float = 60.0, **wanted: Any) -> Line:
        """Waits for an event with these fields behind this number of events."""

        def found() -> Line | None:
            return next((e for e in self.events[place:] if all(e.get(k) == v for k, v in wanted.items())), None)

        return wait_for(f"event {wanted}", found, seconds)

    def events_named(self, name: str) -> list[Line]:
        """All events of this name so far."""
        return [event for event in list(self.events) if event["event"] == name]

    def wait_told(self, words: str) -> None:
        """Waits until a fault contains these words: the node counts first, and reports later."""
        wait_for(
            f"a fault about {words!r}", lambda: any(words in one["sentence"] for one in self.events_named("fault"))
        )

    def wait_connected(self, *sites: str) -> None:
        """Waits until all these sites have a session."""

        def connected() -> bool:
            return set(sites) <= {session["site"] for session in self.do("status")["sessions"]}

        wait_for(f"session of {sites}", connected)

    def drained(self, seconds: float = 60.0) -> bool:
        """True once every connected site has everything."""
        return bool(self.do("drain", seconds=seconds)["drained"])

    def kill(self) -> None:
        """Ends the process without warning, as a power cut does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=10)
        self._close()

    def stop(self) -> int:
        """Ends the process as the agent does: the end of its stdin. Returns the exit code."""
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        code = self.process.wait(timeout=END_S)
        self._close()
        return code

    def _close(self) -> None:
        self._reader.join(timeout=10)
        for waiting in list(self._answers.values()):
            waiting.put({"ok": False, "code": "gone", "error": "the node ended before it answered"})
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe and not pipe.closed:
                with suppress(BrokenPipeError):
                    pipe.close()

    def _read(self) -> None:
        assert self.process.stdout
        for text in self.process.stdout:
            line = json.loads(text)
            if "answer" in line:
                self._answers[line["answer"]].put(line)
                continue
            self.events.append(line)
            if line["event"] == "enrol":
                threading.Thread(target=self._enrol, args=(line,), daemon=True).start()

    def _enrol(self, line: Line) -> None:
        name = self.tokens.pop(line["secret_sha256"], None)
        if name is None:
            self.do(
                "enrol-answer", ask=line["ask"], ok=False, sentence="the token is unknown or used; ask for another"
            )
            return
        self.credentials.setdefault(name, []).append(line["credential_sha256"])
        self.tell_sites()
        self.do("enrol-answer", ask=line["ask"], ok=True, site=name)


@dataclass
class SiteNode:
    """A ``downburst-node receive`` and its output."""

    directory: Path
    hub: str
    prefix: Prefix = ()
    arguments: Sequence[str] = ()

    @property
    def token_file(self) -> Path:
        """The path at which the node looks for the token."""
        return self.directory / "token"

    def start(self) -> Self:
        """Starts the process; a second start continues from the end of the first."""
        self.directory.mkdir(parents=True, exist_ok=True)
        argv = [node_binary(), "--log-format", "plain", "receive", "--hub", self.hub, "--dir", str(self.directory)]
        if self.token_file.exists():
            argv += ["--token-file", str(self.token_file)]
        with (self.directory / "site.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, *argv, *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        running.note(self.process)
        return self

    def kill(self) -> None:
        """Ends the process without warning."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=10)

    def stop(self) -> int:
        """Requests the end of the process; returns the exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(timeout=END_S)

    def log(self) -> str:
        """The log of the process."""
        return (self.directory / "site.log").read_text()

    def wait_begun(self, feed: str) -> None:
        """Waits until the site has recorded where the feed begins for it: every later product is owed to it.

        A site that ends before this is a new one when it returns, and the feed then begins at the head of the log.
        """
        place = self.directory / "state" / "positions" / f"{feed_directory(feed)}.cbor"
        wait_for(f"{place}", place.exists)

    def wait_received(self, products: int, seconds: float = 30.0) -> dict[tuple[str, int], tuple[str, str]]:
        """Waits until this number of files exists; returns them all."""
        wait_for(f"{products} files in {self.directory}", lambda: len(self.received()) >= products, seconds)
        return self.received()

    def received(self) -> dict[tuple[str, int], tuple[str, str]]:
        """Every file at the site: (feed, sequence) to (id, SHA-256 of the bytes). Two files of one product fail."""
        found: dict[tuple[str, int], tuple[str, str]] = {}
        root = self.directory / "received"
        for path in root.rglob("*"):
            if not path.is_file():
                continue
            name = decode(str(path.relative_to(root)))
            key = (name.feed, name.sequence)
            assert key not in found, f"{key} was received twice"
            found[key] = (name.product_id, sha256(path.read_bytes()).hexdigest())
        return found


Subscribe = Callable[..., SiteNode]
"""Starts a receiving site: name, feed, and optionally pattern and not_pattern."""


class Play:
    """Puts products into a hub, optionally from a thread, and records the acknowledged ones."""

    def __init__(self, hub: HubNode, feed: str, seed: int) -> None:
        self.hub, self.feed, self.random = hub, feed, random.Random(seed)
        self.acknowledged: dict[tuple[str, int], tuple[str, str]] = {}
        self.count = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def put(self) -> None:
        """Puts one product of a size between nothing and 300 kB, small ones more often."""
        self.count += 1
        content = self.random.randbytes(int(300_000 * self.random.random() ** 4))
        product_id = f"product {self.count}"
        answer = self.hub.put(self.feed, product_id, content)
        key = (self.feed, answer["sequence"])
        assert key not in self.acknowledged, f"sequence {key} was given twice"
        self.acknowledged[key] = (product_id, sha256(content).hexdigest())

    def start(self) -> Self:
        """Runs until `finish`, or until the hub is gone."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def wait_for_more(self, products: int) -> None:
        """Waits until this number of further products was put."""
        goal = self.count + products
        wait_for(f"{products} more products", lambda: self.count >= goal)

    def finish(self) -> None:
        """Stops after the current product."""
        self._stop.set()
        if self._thread:
            self._thread.join(timeout=30)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.put()
            except (NodeError, BrokenPipeError, ValueError):
                return


# A node ends within a second or two; on a shared machine it may take longer.
END_S = 60
