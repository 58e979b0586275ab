"""The chart on a real node, Kafka and PostgreSQL beside it: a hub in parts, two senders, three sites, all in pods."""

import base64
import hashlib
import json
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from downburst.foundation.file_names import decode
from kit.busy import Stalls
from kit.charts import CHART, Object, helm
from kit.cluster_node import ClusterNode
from kit.cluster_tools import tool
from kit.control_plane import ControlPlane
from kit.kafka import Kafka
from kit.namespaces import run_to_end
from kit.patience import wait_for
from kit.postgres import Postgres
from kit.sender_scene import Patient

FEEDS = ("NGRID", "DEMO")
NAMESPACE = "wx"
SITES = tuple(f"wx-downburst-site-{number}" for number in range(3))
SENDERS = tuple(f"wx-downburst-sender-{number}" for number in range(2))


class ClusterScene:
    """A release with a source that continues through every disturbance.

    Products of NGRID are counted one by one; DEMO is the feed that docker-compose.yml tries a hub with.
    """

    def __init__(self, home: Path, plane: ControlPlane, node: ClusterNode, broker: Kafka, server: Postgres) -> None:
        self._home, self.plane, self.node = home, plane, node
        self._sites_pods: dict[str, Object] = {}
        self.values = VALUES | {"kafka": KAFKA | {"servers": broker.address}}
        restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
        self._make("/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": restricted}})
        plane.wait_for_account(NAMESPACE)
        self._secret("ledger", url=server.url(server.database()))
        node.persistent("hub")
        self.bring()
        self.authorization = self._operators_token()
        address = self.ask_cluster("services", "wx-downburst-http")["spec"]["clusterIP"]
        self.http = f"{address}:7371"
        self._enrol()
        self.bring(trial={"sites": len(SITES), "tokensSecret": "tokens"})
        self._start_demo()
        for feed in FEEDS:
            wait_for(f"{feed} by multicast at all sites", partial(self.is_carried, feed, "multicast"), 120)
        self.source = Patient(self)
        self.source.start()
        self.source.more(50)
        wait_for("products at all sites", partial(self.newest_is_everywhere, 0), 120)

    def bring(self, **changes: Any) -> None:
        """Installs or upgrades the release with these values added to its own; waits until its pods are healthy."""
        self.values |= changes
        file = self._home / "values.json"
        file.write_text(json.dumps(self.values))
        arguments = ("--namespace", NAMESPACE, "--values", str(file), "--wait", "--timeout", "240s")
        done = helm(
            "upgrade", "--install", "wx", str(CHART), *arguments, kubeconfig=self.plane.kubeconfig, timeout_s=300
        )
        assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{self.kubectl('get', 'pods')}\n{self.node.logs()}"

    def ask(self, method: str, path: str, **request: Any) -> Any:
        """Sends a request to the hub's api through its service; fails unless it succeeds."""
        answer = self._answered(method, path, **request)
        return answer.json() if answer.content else None

    def ask_cluster(self, kind: str, name: str) -> Object:
        """One object of the release's namespace."""
        root = "/apis/apps/v1" if kind in ("statefulsets", "deployments") else "/api/v1"
        found: Object = self.plane.ask(f"{root}/namespaces/{NAMESPACE}/{kind}/{name}")
        return found

    def pods(self) -> dict[str, Object]:
        """The release's pods by their names."""
        items = self.plane.ask(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        return {item["metadata"]["name"]: item for item in items}

    def kubectl(self, *arguments: str) -> str:
        """The output of kubectl, run as the administrator."""
        argv = [tool("kubectl", kind="node"), "--kubeconfig", str(self.plane.kubeconfig), "--namespace", NAMESPACE]
        return run_to_end([*argv, *arguments], timeout_s=240)

    def is_carried(self, feed: str, transport: str) -> bool:
        """True if the api reports this transport of the feed for all sites."""
        found = [one for site in self.ask("GET", "/v1/overview")["sites"] for one in site["feeds"]]
        return [one["transport"] for one in found if one["feed"] == feed] == [transport] * len(SITES)

    def stored(self, site: str, feed: str = "NGRID") -> list[Path]:
        """The files of a feed at a site."""
        received = self.node.volume(self._pod(site), "data") / "received" / feed
        return [path for path in received.rglob("*") if not path.name.startswith(".") and path.is_file()]

    def newest_is_everywhere(self, after: int) -> bool:
        """True if every site has a product that was acknowledged after the first `after` ones."""
        newer = set(list(self.source.acknowledged)[after:])
        return all(newer & {_sequence(path) for path in self.stored(site)} for site in SITES)

    def waits_for_newest(self) -> None:
        """Waits until every site has a product that was acknowledged after the call."""
        after = len(self.source.acknowledged)
        wait_for("new products at all sites", partial(self.newest_is_everywhere, after), 120)

    def recovers(self, what: str, began: float) -> None:
        """Waits until every site has a product acknowledged after the call; prints the longest pause at a site.

        ``began`` is the time of day when it was done, in seconds since 1970.
        """
        self.waits_for_newest()
        now = time.time()
        pauses = [_longest_pause_s(self.stored(site), began, now) for site in SITES]
        print(f"{what}, {now - began:.1f} s ago: {max(pauses):.1f} s at most without a new product at a site")

    def p99_s(self, deliveries: int = 150) -> float:
        """The upper edge of the histogram bucket that holds the p99 of the next deliveries."""
        before = self._delivered()
        wait_for("deliveries that are counted", lambda: self._delivered(since=before).total() >= deliveries, 60)
        counted = self._delivered(since=before)
        within = 0
        for bound_s in sorted(counted):
            within += counted[bound_s]
            if within >= 0.99 * counted.total():
                return bound_s
        raise AssertionError("a histogram has a step for everything")

    def is_live_again(self, usual_s: float) -> None:
        """Checks that deliveries are as fast as before within half a minute."""
        began = time.monotonic()
        with Stalls() as stalls:
            while (measured_s := self.p99_s()) > max(2.5 * usual_s, LIVE_S):
                assert time.monotonic() - began < AGAIN_S + stalls.lost_s(), f"p99 is at most {measured_s:g} s still"
        taken_s = time.monotonic() - began
        print(f"p99 at most {usual_s:g} s before, {measured_s:g} s {taken_s:.0f} s after the recovery")

    def finish(self) -> int:
        """Checks that every acknowledged product is at every site, once and intact; returns their number."""
        self.source.finish()
        for site in SITES:
            wait_for(f"all products at {site}", partial(self._lacks_nothing, site), 120)
            files = {_sequence(path): path for path in self.stored(site)}
            for sequence, digest in self.source.acknowledged.items():
                assert hashlib.sha256(files[sequence].read_bytes()).hexdigest() == digest, files[sequence]
        return len(self.source.acknowledged)

    def _lacks_nothing(self, site: str) -> bool:
        received = self.node.volume(self._pod(site), "data") / "received"
        names = [decode(str(path.relative_to(received))) for path in self.stored(site)]
        twice = [one for one, count in Counter(name.product_id for name in names).items() if count > 1]
        assert not twice, f"{site} has {twice} twice"
        return not set(self.source.acknowledged) - {name.sequence for name in names}

    def _delivered(self, since: "Counter[float] | None" = None) -> "Counter[float]":
        """Deliveries of NGRID by the upper edges of the latency buckets."""
        text = self._answered("GET", "/metrics").text
        upto: Counter[tuple[str, str, float]] = Counter()
        for family in text_string_to_metric_families(text):
            for sample in family.samples if family.name == "downburst_delivery_latency_seconds" else ():
                if sample.name.endswith("_bucket") and sample.labels["feed"] == "NGRID":
                    labels = sample.labels
                    upto[labels["site"], labels["transport"], float(labels["le"])] += int(sample.value)
        steps: Counter[float] = Counter()
        below: dict[tuple[str, str], float] = {}
        for (site, transport, bound_s), count in sorted(upto.items()):
            steps[bound_s] += int(count - below.get((site, transport), 0))
            below[site, transport] = count
        return steps - since if since is not None else steps

    def _answered(self, method: str, path: str, **request: Any) -> httpx.Response:
        """The answer. A service refuses connections until one of its pods is known to be ready."""

        def asked() -> httpx.Response | None:
            with suppress(httpx.ConnectError, httpx.ConnectTimeout):
                url = f"http://{self.http}{path}"
                return httpx.request(method, url, timeout=60, headers=self.authorization, **request)
            return None

        answer = wait_for("the hub's service", asked, 60)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer

    def _enrol(self) -> None:
        """Feeds by multicast, three sites for them, and the sites' tokens in a secret by the names of their pods."""
        tokens = {}
        for feed in FEEDS:
            self.ask("POST", "/v1/feeds", json={"feed": feed, "class": "observation"})
            self.ask("PUT", f"/v1/feeds/{feed}/pin", json={"transport": "multicast"})
        for site in SITES:
            self.ask("POST", "/v1/sites", json={"site": site})
            for feed in FEEDS:
                self.ask("POST", f"/v1/sites/{site}/subscriptions", json={"feed": feed, "pattern": ".*"})
            tokens[site] = self.ask("POST", f"/v1/sites/{site}/tokens", json={})["token"]
        self._secret("tokens", **tokens)

    def _start_demo(self) -> None:
        """The source of docker-compose.yml, in a pod."""
        self._secret("operator", token=self.authorization["Authorization"].removeprefix("Bearer "))
        self._make(f"/api/v1/namespaces/{NAMESPACE}/pods", DEMO)

    def _operators_token(self) -> dict[str, str]:
        token = self.kubectl("exec", "wx-downburst-0", "--", "cat", "/var/lib/downburst/operator.token")
        return {"Authorization": f"Bearer {token.strip()}"}

    def _pod(self, name: str) -> Object:
        # Requested once: a site's files can be read while the API server is away.
        if name not in self._sites_pods:
            self._sites_pods[name] = self.ask_cluster("pods", name)
        return self._sites_pods[name]

    def _secret(self, name: str, **contents: str) -> None:
        data = {key: base64.b64encode(value.encode()).decode() for key, value in contents.items()}
        self._make(f"/api/v1/namespaces/{NAMESPACE}/secrets", {"metadata": {"name": name}, "data": data})

    def _make(self, path: str, body: Object) -> None:
        self.plane.ask(path, method="POST", body=body)


def _sequence(path: Path) -> int:
    return int(path.name.split("_")[0].split("-")[1])


def _longest_pause_s(files: list[Path], began: float, now: float) -> float:
    times = [began, *sorted(time for file in files if (time := file.stat().st_mtime) > began), now]
    return max(later - earlier for earlier, later in pairwise(times))


AGAIN_S = 30
LIVE_S = 0.5
"""Slower than that is not live, however slow this machine was before."""

# Without TLS: librdkafka retries without a pause while a handshake is slow, and here both share a machine.
KAFKA = {"products": "ingest", "replication": 1}
VALUES: dict[str, Any] = {
    "image": {"repository": "downburst", "tag": "local", "pullPolicy": "Never"},
    "multicast": {"podNetwork": True},
    "ledger": {"existingSecret": "ledger"},
    "scheduler": {"replicas": 2},
    "latencyService": {"replicas": 1},
    "senders": {"replicas": len(SENDERS), "stopSeconds": 30, "copySize": "1Gi"},
    "persistence": {"size": "1Gi"},
    "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}},
}
DEMO = {
    "metadata": {"name": "source"},
    "spec": {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 7370, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "source",
                "image": "downburst:local",
                "imagePullPolicy": "Never",
                "command": ["sh", "-euc"],
                "args": [
                    "downburst generate text --hours 2 --out /tmp/bulletins; "
                    "exec downburst play /tmp/bulletins --feed DEMO"
                ],
                "env": [
                    {"name": "DOWNBURST_HUB", "value": "http://wx-downburst-http:7371"},
                    {"name": "DOWNBURST_TOKEN", "valueFrom": {"secretKeyRef": {"name": "operator", "key": "token"}}},
                ],
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    },
}
