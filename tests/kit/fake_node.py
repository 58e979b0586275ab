"""A node that speaks the line protocol and keeps everything in memory: for unit tests of its counterparts.

Run as a program it reads jobs on stdin, as the real one does. `emit` makes it report an event, `scrawl` print a line
that is invalid, `die` end immediately, `hush` leave the next jobs unanswered; the real node has none of these. With
`--talkative` it reports an event after each answer.
"""

import json
import re
import sys
from base64 import b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from time import time_ns
from typing import Any

from blake3 import blake3

Line = dict[str, Any]


class RefusedJob(Exception):
    def __init__(self, code: str, error: str, **extra: Any) -> None:
        super().__init__(error)
        self.answer = {"ok": False, "code": code, "error": error, **extra}


@dataclass
class FakeNode:
    jobs: list[Line] = field(default_factory=list)
    feeds: dict[str, Line] = field(default_factory=dict)
    sites: dict[str, Line] = field(default_factory=dict)
    plans: dict[str, Line] = field(default_factory=dict)
    products: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    upstreams: list[Line] = field(default_factory=list)
    ldm: Line = field(default_factory=dict)
    tcp_profiles: list[Line] = field(default_factory=list)
    refuse_ingest: RefusedJob | None = None
    probes: dict[str, Line] = field(default_factory=dict)
    """The jobs of probes that were not stopped."""
    circuits_up: set[int] = field(default_factory=set)
    """On which groups may ride; an `emit` that a circuit is up adds it."""
    ways: dict[str, Line] = field(default_factory=dict)
    """Known facts on the path of any product to a site, beyond its subscriptions."""
    properties: dict[str, str | None] = field(default_factory=dict)
    """The statements of sources, by product id."""

    def answer(self, job: Line) -> Line:
        """The fields of the answer to one job."""
        self.jobs.append(job)
        handler = getattr(self, "_" + job["do"].replace("-", "_"), self._unknown)
        try:
            return {"ok": True, **handler(job)}
        except RefusedJob as refused:
            return refused.answer

    def _unknown(self, job: Line) -> Line:
        raise RefusedJob("bad-request", f"there is no job {job['do']!r}; see the lines")

    def _start(self, job: Line) -> Line:
        return {"ca_sha256": self._ca(), "sites_address": job["listen"], "version": "0.0.0-fake"}

    def _feeds(self, job: Line) -> Line:
        self.feeds = {feed["feed"]: feed for feed in job["feeds"]}
        return {"feeds": [self._feed(name) | {"clean": True, "recovered": None} for name in self.feeds]}

    def _sites(self, job: Line) -> Line:
        self.sites = {site["site"]: site for site in job["sites"]}
        return {}

    def _ca(self) -> str:
        return sha256(b"fake").hexdigest()

    def _sender_key(self, _job: Line) -> Line:
        return {"public_key": "fake-key"}

    def _certify(self, _job: Line) -> Line:
        return {"certificate": "fake-certificate", "authority": "fake-authority"}

    def _upstreams(self, job: Line) -> Line:
        if any(self._ca() in one["token"] for one in job["upstreams"]):
            raise RefusedJob("bad-request", "the upstream is this hub itself; use a token of the other hub")
        self.upstreams = job["upstreams"]
        return {}

    def _ldm(self, job: Line) -> Line:
        if any(name.startswith("unusable") for source in job["sources"] for name in source["upstreams"]):
            raise RefusedJob("bad-request", "LDM source: it can't be used")
        self.ldm = job
        return {"addresses": job["listen"]}

    def _tcp_profiles(self, job: Line) -> Line:
        unknown = [one["name"] for one in job["profiles"] if (one["knobs"] or {})["congestion"] == "vegas"]
        if unknown:
            raise RefusedJob("bad-request", f"TCP profile {unknown[0]}: the kernel has no vegas; choose reno or bbr")
        self.tcp_profiles = job["profiles"]
        return {}

    def _probe(self, job: Line) -> Line:
        if job["site"] not in self.sites:
            raise RefusedJob("not-up", f"site {job['site']} is not connected; probe it when it is")
        self.probes[job["probe"]] = job
        return {}

    def _probe_stop(self, job: Line) -> Line:
        self.probes.pop(job["probe"], None)
        return {}

    def _silences(self, job: Line) -> Line:
        short = [one["feed"] for one in job["feeds"] if one["hold_us"] < 10_000]
        if short:
            raise RefusedJob("bad-request", f"`hold_us` of {short[0]} is too short; it is 10000 at least")
        return {}

    def _plan(self, job: Line) -> Line:
        before = self.plans.get(job["feed"], {"version": 0})
        if job["version"] < before["version"]:
            raise RefusedJob(
                "stale-plan", f"version {job['version']} is older than {before['version']}; send the newest"
            )
        unmet = [leg["circuit"] for leg in job["legs"] if leg.get("circuit") not in (None, *self.circuits_up)]
        if unmet:
            raise RefusedJob("not-up", f"circuit {unmet[0]} is not up; bring it up first")
        self.plans[job["feed"]] = job
        return {}

    def _ingest(self, job: Line) -> Line:
        if self.refuse_ingest is not None:
            raise self.refuse_ingest
        if job["feed"] not in self.feeds:
            raise RefusedJob("unknown-feed", f"there is no feed {job['feed']!r}; add it first")
        path = Path(job["path"])
        content = path.read_bytes()
        self._check_digest(job["digest"], content)
        digest = blake3(content).hexdigest()
        kept = self.products.setdefault(job["feed"], [])
        if (job["product_id"], digest) in kept:
            return {
                "duplicate_of": kept.index((job["product_id"], digest)) + 1,
                "size": len(content),
                "digest": digest,
            }
        kept.append((job["product_id"], digest))
        if job["remove"]:
            path.unlink()
        now = time_ns() // 1000
        stamps = {"stored_us": now, "created_us": job["created_us"] or now}
        return {"sequence": len(kept), "epoch": EPOCH, "size": len(content), "digest": digest, **stamps}

    def _logs(self, _: Line) -> Line:
        held = {name: len(self.products.get(name, [])) for name in self.feeds}
        feeds = [
            {"feed": name, "products": products, "bytes": 2000 * products, "ceiling_bytes": 10_000_000_000}
            | {"oldest_stored_us": PRODUCT_STORED_US if products else None}
            for name, products in held.items()
        ]
        return {"feeds": feeds}

    def _prove(self, job: Line) -> Line:
        path = Path(job["path"])
        content = path.read_bytes()
        self._check_digest(job["digest"], content)
        path.unlink()
        return {"sequence": 1, "size": len(content), "digest": blake3(content).hexdigest(), "kept": 1}

    def _deliveries(self, job: Line) -> Line:
        listed = enumerate(self.products.get(job["feed"], []), start=1)
        found = [
            self._product(job["feed"], sequence) | {"sites": self._sites_of(job["feed"], name, job["site"])}
            for sequence, (name, digest) in listed
            if job["sequence"] == sequence
            or job["product_id"] == name
            or (job["digest"] is not None and digest.startswith(job["digest"]))
        ]
        return {
            "feed": job["feed"],
            "epoch": EPOCH,
            "products": found[::-1][: job["limit"]],
            "searched_to": 0,
            "search_complete": True,
            "receipts_complete": True,
            "receipts_since_us": None,
            "at_us": time_ns() // 1000,
        }

    def _products(self, job: Line) -> Line:
        known = range(1, len(self.products.get(job["feed"], [])) + 1)
        return {"products": [self._product(job["feed"], number) for number in job["sequences"] if number in known]}

    def _browse(self, job: Line) -> Line:
        for name in ("pattern", "not_pattern"):
            self._check_pattern({"pattern": job[name] or ""})
        listed = [
            self._product(job["feed"], number)
            for number in range(len(self.products.get(job["feed"], [])), 0, -1)
            if job["before"] is None or number < job["before"]
        ]
        limits = job["limits"]
        listed = [one for one in listed if not limits or any(_grants(it, one["product_id"]) for it in limits)]
        listed = [] if job["since_us"] > PRODUCT_STORED_US else listed
        wanted = [one for one in listed if _wants(job, one["product_id"])]
        products = wanted[: job["limit"]]
        return {
            "products": products,
            "others": [one["product_id"] for one in listed if one not in wanted][: job["limit"]],
            "shown": len(listed),
            "matched": len(wanted),
            "matched_bytes": sum(one["size"] for one in wanted),
            "sizes": {"11": len(wanted)} if wanted else {},
            "silences": {"0": len(wanted) - 1} if wanted[1:] else {},
            "searched_to": products[-1]["sequence"] if len(products) < len(wanted) else 0,
            "complete": len(products) == len(wanted) or job["count"],
        }

    def _tracer(self, job: Line) -> Line:
        if unknown := set(job["variables"]) - {"rtt", "bytes_acked"}:
            raise RefusedJob("bad-request", f"no variable is named {unknown.pop()!r}; there are rtt, bytes_acked")
        shares = [{"limit": "application", "share": 0.75}, {"limit": "network-loss", "share": 0.25}]
        sentence = "In 75 % of the time nothing waited to be sent; a faster path would not help."
        verdict = {"leading": "application", "seconds": 2.0, "sentence": sentence, "shares": shares}
        begun_us = PRODUCT_STORED_US
        stall = {"from_us": begun_us, "until_us": begun_us + 1_500_000, "waiting_bytes": 9, "ended": True}
        samples = [[begun_us, 20_000, 5], [begun_us + 100_000, None, 8]]
        connection = {"local": "192.0.2.1:7370", "peer": "192.0.2.9:40000", "role": "session", "samples": samples}
        return {
            "unable": None,
            "missed_ticks": 1,
            "damaged": 2,
            "since_us": begun_us,
            "until_us": begun_us + 100_000,
            "complete": True,
            "variables": ["rtt", "bytes_acked"],
            "connections": [{**connection, "verdict": verdict, "stalls": [stall]}],
        }

    def _product(self, feed: str, sequence: int) -> Line:
        name, digest = self.products[feed][sequence - 1]
        return {
            "feed": feed,
            "epoch": EPOCH,
            "sequence": sequence,
            "product_id": name,
            "origin": "origin.example",
            "created_us": 1_000_000,
            "stored_us": PRODUCT_STORED_US,
            "size": 2000,
            "digest": digest,
            "class": "grid",
            "kept": True,
            "properties": self.properties.get(name),
        }

    def _sites_of(self, feed: str, product_id: str, only: str | None) -> list[Line]:
        listed = []
        for name, site in self.sites.items():
            wishes = [wish for wish in site["subscriptions"] if wish["feed"] == feed]
            if wishes and only in (None, name):
                matching = [wish for wish in wishes if re.search(wish["pattern"], product_id)]
                told = {"site": name, "active": site["active"], "subscriptions": len(wishes), "matching": matching}
                listed.append(told | {"session": None, "receipts": []} | self.ways.get(name, {}))
        return listed

    def _check_digest(self, digest: Any, content: bytes) -> None:
        if isinstance(digest, dict):
            good = digest["sha-256"] == b64encode(sha256(content).digest()).decode()
        else:
            good = digest is None or digest == blake3(content).hexdigest()
        if not good:
            raise RefusedJob(
                "digest-mismatch", "the bytes differ from the digest that came with them; send them again"
            )

    def _check_pattern(self, job: Line) -> Line:
        try:
            re.compile(job["pattern"])
        except re.error as error:
            position = (error.pos or 0) + 1
            raise RefusedJob(
                "bad-pattern", f"the pattern can't be read at character {position}: {error.msg}", position=position
            ) from error
        return {}

    def _status(self, _job: Line) -> Line:
        return {"feeds": [self._feed(name) for name in self.feeds], "sessions": []}

    def _drain(self, _job: Line) -> Line:
        return {}

    def _batch_loaded(self, job: Line) -> Line:
        return {}

    def _enrol_answer(self, _job: Line) -> Line:
        return {}

    def _stop(self, _job: Line) -> Line:
        return {}

    def _told(self, _job: Line) -> Line:
        return {"jobs": [job for job in self.jobs if job["do"] != "told"]}

    def _feed(self, name: str) -> Line:
        count = len(self.products.get(name, []))
        return {"feed": name, "epoch": EPOCH, "head": count, "first": 1, "products": count, "bytes": 0}


def _grants(limit: Line, name: str) -> bool:
    excluded = limit["not_pattern"] is not None and re.search(limit["not_pattern"], name)
    return bool(re.search(limit["pattern"], name)) and not excluded


def _wants(job: Line, name: str) -> bool:
    taken = re.search(job["pattern"] or "", name) and (job["contains"] or "") in name
    return bool(taken) and not (job["not_pattern"] and re.search(job["not_pattern"], name))


def main() -> None:
    node, hushed = FakeNode(), False
    print("fake node is up", file=sys.stderr, flush=True)
    for text in sys.stdin:
        job = json.loads(text)
        if job["do"] == "die":
            print("the fake node was told to die", file=sys.stderr, flush=True)
            sys.exit(job.get("code", 3))
        if job["do"] == "scrawl":
            stream = sys.stderr if job["aloud"] else sys.stdout
            print(job["text"] * job["times"], file=stream, flush=True)
        if job["do"] == "emit":
            node.circuits_up |= {job["line"]["lease"]} if job["line"].get("state") == "up" else set()
            _say(job["line"])
        hushed = hushed or job["do"] == "hush"
        if not hushed:
            answer = {"ok": True} if job["do"] in ("emit", "scrawl") else node.answer(job)
            _say({"answer": job["id"], **answer})
            if "--talkative" in sys.argv:
                _say({"event": "small-talk"})
        if job["do"] == "stop":
            return


def _say(line: Line) -> None:
    print(json.dumps(line), flush=True)


EPOCH = "12345678901234567890"
PRODUCT_STORED_US = 1_767_225_600_000_000
"""2026-01-01, the moment at which a fake clock begins."""

if __name__ == "__main__":
    main()
