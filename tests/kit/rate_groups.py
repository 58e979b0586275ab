"""A whole hub with sites behind lines of different rates, a steady source, and what the hub sends."""

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any, Self

import httpx

from downburst.foundation.file_names import decode
from kit.capabilities import needs, skip
from kit.namespaces import Lab
from kit.node import SiteNode
from kit.patience import wait_for
from kit.whole_hub import WholeHub

Shown = dict[str, Any]
FEED = "NGRID"
HTTP = "127.0.0.1:7371"
GROUP_BPS = 40_000_000
PRODUCT_BYTES, EVERY_S = 1_500_000, 5.5
"""2.2 Mb/s: 0.6 s of a line of 20 Mb/s, and 3 s of one of 4 Mb/s."""
QUEUE_BYTES = 64_000


@dataclass
class RateGroups:
    """`downburst hub` on the host `hub`, and a site on each other host."""

    lab: Lab
    hub: WholeHub
    sites: dict[str, SiteNode] = field(default_factory=dict)
    sent: dict[str, float] = field(default_factory=dict)
    """By product id, the wall clock before its put."""

    def line(self, site: str, rate_bps: int) -> None:
        """Gives a site's line this rate, with a queue that is short at any of them."""
        self.lab.rate(site, down_bps=rate_bps, buffer_bytes=QUEUE_BYTES)

    def objective(self, seconds: float) -> None:
        """Changes the feed's objective."""
        self.hub.ask("PATCH", f"/v1/feeds/{FEED}", json={"objective_ms": seconds * 1e3})

    def plans(self) -> list[Shown]:
        """All plans, oldest first."""
        return list(self.hub.ask("GET", f"/v1/feeds/{FEED}/plans", params={"limit": 200}))[::-1]

    def groups(self) -> dict[tuple[str, ...], float]:
        """The pace of each group of the plan in force in Mb/s, by its sites."""
        (plan,) = self.hub.ask("GET", f"/v1/feeds/{FEED}/plans", params={"limit": 1})
        return {tuple(sorted(group["site_names"])): group["rate_bps"] / 1e6 for group in plan["groups"]}

    def wait_groups(self, *wanted: Sequence[str], seconds: float = 90) -> dict[tuple[str, ...], float]:
        """Waits for a plan with these groups, and for sites that hear them."""
        sites = sorted(tuple(sorted(one)) for one in wanted)

        def found() -> dict[tuple[str, ...], float] | None:
            groups = self.groups()
            return groups if sorted(groups) == sites else None

        try:
            return wait_for(f"groups {sites}", found, seconds)
        except AssertionError:
            print("\n".join(f"plan {plan['version']}: {plan['reason']}" for plan in self.plans()))
            raise

    def legs(self, site: str, *, since: int) -> list[int]:
        """The groups of a site since a version of the plan, one after the other; times with copies are left out."""
        plans = [plan for plan in self.plans() if plan["version"] >= since]
        groups = (group["leg"] for plan in plans for group in plan["groups"] if site in group["site_names"])
        return [leg for leg, _ in groupby(groups)]

    def rate_mbps(self, site: str, products: Sequence[str]) -> float:
        """The median over these products of size over the time from put to file, once all are there."""
        there: dict[str, float] = {}

        def complete() -> bool:
            there.update(self._stored(site, set(products)))
            return len(there) == len(products)

        wait_for(f"all products at {site}", complete, 90)
        took_s = median(there[product] - self.sent[product] for product in products)
        return PRODUCT_BYTES * 8 / took_s / 1e6

    def sent_bytes(self) -> int:
        """Bytes in frames that left the hub's interface."""
        (link,) = json.loads(self.lab.output("hub", ["ip", "-json", "-statistics", "link", "show", "eth0"]))
        return int(link["stats64"]["tx"]["bytes"])

    def _stored(self, site: str, wanted: set[str]) -> Iterator[tuple[str, float]]:
        root = self.sites[site].directory / "received"
        for path in root.rglob("*"):
            if path.is_file() and (product := decode(str(path.relative_to(root))).product_id) in wanted:
                yield product, path.stat().st_mtime


class Source:
    """Puts a product at a steady pace, in a thread, until the end of the block."""

    def __init__(self, scene: RateGroups) -> None:
        self._scene = scene
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._put, daemon=True)
        self.products: list[str] = []
        self.lag_s = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(timeout=60)

    def more(self, count: int) -> list[str]:
        """Waits for so many further products; returns their ids."""
        first = len(self.products) + 1
        wait_for("further products", lambda: len(self.products) >= first + count, (count + 2) * EVERY_S)
        return self.products[first : first + count]

    def needs_small_lag(self, most_s: float = 0.3) -> None:
        """Skips the running test where the machine made the source late: its rates say nothing then."""
        if self.lag_s > most_s:
            skip(f"the source was {self.lag_s:.2f} s late, more than {most_s} s: machine too busy to judge")

    def _put(self) -> None:
        scene, hub, began_s = self._scene, self._scene.hub, time.monotonic()
        with scene.hub.inside(), httpx.Client(base_url=f"http://{HTTP}", headers=hub.authorization) as api:
            while not self._over.is_set():
                due_s = began_s + len(self.products) * EVERY_S
                self._over.wait(max(0.0, due_s - time.monotonic()))
                self.lag_s = max(self.lag_s, time.monotonic() - due_s)
                name = f"product/{len(self.products)}"
                scene.sent[name] = time.time()
                path = f"/v1/feeds/{FEED}/products/{name}"
                api.put(path, content=os.urandom(PRODUCT_BYTES), timeout=60).raise_for_status()
                self.products.append(name)


@contextmanager
def rate_groups(home: Path, lines_bps: Mapping[str, int], *, settings: str = "") -> Iterator[RateGroups]:
    """The hub with its sites connected, each behind its line."""
    needs("root", "netns", "veth", "bridge", "htb")
    with Lab(["hub", *lines_bps], snooping=True) as lab, ExitStack() as stack:
        more = (f"MULTICAST__INTERFACE={lab.address('hub')}", f"MULTICAST__RATE_BPS={GROUP_BPS}")
        hub = WholeHub(
            home / "hub",
            http=HTTP,
            sites="0.0.0.0:7370",
            prefix=lab.command("hub", ["env", *(f"DOWNBURST_{one}" for one in more)]),
            inside=partial(lab.inside, "hub"),
            more=f"{QUICK}{settings}",
        ).start()
        stack.callback(hub.stop)
        hub.ask("POST", "/v1/feeds", json={"feed": FEED, "class": "grid", "objective_ms": 60_000})
        scene = RateGroups(lab, hub)
        for name, rate_bps in lines_bps.items():
            scene.line(name, rate_bps)
            stack.callback(_site(scene, name, home / name).stop)
        yield scene


def _site(scene: RateGroups, name: str, directory: Path) -> SiteNode:
    scene.hub.ask("POST", "/v1/sites", json={"site": name})
    scene.hub.ask("POST", f"/v1/sites/{name}/subscriptions", json={"feed": FEED, "pattern": ".*"})
    site = SiteNode(directory, f"{scene.lab.address('hub')}:7370", prefix=scene.lab.command(name, []))
    site.directory.mkdir()
    site.token_file.write_text(scene.hub.ask("POST", f"/v1/sites/{name}/tokens", json={})["token"])
    scene.sites[name] = site.start()
    site.wait_begun(FEED)
    return site


QUICK = """\
[scheduler]
step_s = 2
window_s = 22
dwell_s = 4
agreeing_windows = 2
"""
