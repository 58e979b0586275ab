"""`make bench-distributed`: a hub of several machines, all on this one.

Rows 1 and 2: products go in at one node, are numbered by the broker, copied by a sender and stored by three sites
(TLS, digests, the sites' own logs, receipts). The peer is librdkafka on the same broker in the same run, by turns: a
producer with acks=all and three consumers that read along and keep nothing. Row 3: the same load over one, two and
four senders; what counts is the processor time of the senders alone. Row 4: seconds from a loss until something
that was acknowledged after it is at all sites; there is no peer.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness import report
from bench.harness.counters import cpu_s
from bench.harness.schedules import Planned, write
from bench.harness.scratch import scratch, tell
from kit.kafka import Kafka, kafka
from kit.node import HubNode, SiteNode
from kit.patience import wait_for
from kit.postgres import postgres
from kit.programs import built
from kit.sender_scene import Scene


def main() -> int:
    """Measure, print the table, write the JSON; 0 when it measured, whatever it found."""
    options = _options()
    described = report.machine()
    wanted = options.rows.split(",")
    rows: list[report.Row] = []
    with scratch(NEEDED_BYTES) as directory, kafka() as broker:
        if "1" in wanted:
            rows.append(_throughput("1", "2 kB", directory / "small", broker, options, (options.products, 2_000)))
        if "2" in wanted:
            rows.append(
                _throughput("2", "100 kB", directory / "large", broker, options, (options.products // 20, 100_000))
            )
        if "3" in wanted:
            rows += _scale_out(directory / "shards", broker, options)
        if "4" in wanted:
            rows += _recovery(directory / "losses", broker)
    notes = [str(__doc__).partition("\n\n")[2].strip()]
    print(report.markdown(rows) if options.markdown else report.table(rows))
    print(*notes, f"machine: {described}", sep="\n")
    if options.out:
        report.write(options.out, report.document("distributed", described, rows, notes))
    return 0


@dataclass
class Cluster:
    """One node that ingests and some that send, with the sites of each."""

    ingest: HubNode
    senders: list[HubNode]
    sites: list[SiteNode]

    def is_through(self, feed: str, head: int) -> bool:
        """True if every sender that has the feed has all of it, and its sites too."""
        holders = [node for node in self.senders if any(one["feed"] == feed for one in node.feeds)]
        return all(_head(node, feed) >= head and node.drained(0) for node in holders)


def _throughput(
    row: str, what: str, directory: Path, broker: Kafka, options: argparse.Namespace, load: tuple[int, int]
) -> report.Row:
    """Ours and the peer's by turns."""
    products, size_bytes = load
    ours, theirs = [], []
    for turn in range(options.runs):
        ours.append(_through(directory / f"run-{turn}", broker, products, size_bytes))
        theirs.append(_clients(broker, f"peer-{row}-{turn}-{time.time_ns()}", products, size_bytes))
        tell(f"{what}: {ours[-1]:.0f}/s, librdkafka {theirs[-1]:.0f}/s")
    case = f"{what} through one broker, ingest to receipt at three sites"
    goal = report.Goal("ratio", ">=", 0.5)
    return report.Row(row, case, "products/s", report.median(ours), PEER, report.median(theirs), options.runs, goal)


def _through(directory: Path, broker: Kafka, products: int, size_bytes: int) -> float:
    with _cluster(directory, broker, {"NGRID": 3}, senders=1) as cluster:
        _prepare(cluster.ingest, directory, ["NGRID"], products, size_bytes)
        began_s = time.monotonic()
        _play(cluster.ingest)
        last = _head(cluster.ingest, "NGRID")
        wait_for("all products at all sites", lambda: cluster.is_through("NGRID", last), 600)
        return products / (time.monotonic() - began_s)


def _scale_out(directory: Path, broker: Kafka, options: argparse.Namespace) -> list[report.Row]:
    """The same four feeds to the same eight sites, in turns over one, two and four senders."""
    found: dict[int, list[float]] = {1: [], 2: [], 4: []}
    for turn in range(options.runs):
        for senders, values in found.items():
            values.append(_shards(directory / f"run-{turn}-{senders}", broker, senders, options.products // 8))
            tell(f"{senders} senders: {values[-1]:.1f} us a delivery")
    one = report.median(found[1])
    case = "2 kB, four feeds to eight sites: senders' processor a delivery"
    return [
        report.Row(
            "3", f"{case}, {senders} senders", "us", report.median(values), "one sender", one, options.runs,
            report.Goal("ratio", "<=", 1.25) if senders > 1 else None,
        )
        for senders, values in found.items()
    ]  # fmt: skip


def _shards(directory: Path, broker: Kafka, senders: int, products: int) -> float:
    """Processor time of all senders, in us a delivery."""
    feeds = {f"F{number}": 2 for number in range(4)}
    with _cluster(directory, broker, feeds, senders=senders) as cluster:
        _prepare(cluster.ingest, directory, list(feeds), products, 2_000)
        pids = [node.process.pid for node in cluster.senders]
        before_s = cpu_s(pids)
        _play(cluster.ingest)
        for feed in feeds:
            head = _head(cluster.ingest, feed)
            wait_for("all products at all sites", lambda: cluster.is_through(feed, head), 600)  # noqa: B023
        return (cpu_s(pids) - before_s) * 1e6 / (products * sum(feeds.values()))


def _recovery(directory: Path, broker: Kafka) -> list[report.Row]:
    """Losses, one after the other, under traffic."""
    with postgres() as server:
        scene = Scene(directory, server, broker)
        scene.source.more(50)
        lost = scene.sender_of("NGRID")
        lost.kill_all()
        rows = [_recovered("a sender was lost (kill -9)", scene)]
        lost.start()
        for name, one in (("the broker", broker), ("PostgreSQL", server)):
            scene.source.more(50)
            one.kill()
            one.start()
            rows.append(_recovered(f"{name} was killed and had started again", scene))
        scene.finish()
        scene.end()
        return rows


def _recovered(what: str, scene: Scene) -> report.Row:
    taken_s = scene.recovery_s(what)
    return report.Row("4", f"{what}: until new products are at all sites", "s", taken_s, "-", None, 1)


@contextmanager
def _cluster(directory: Path, broker: Kafka, feeds: dict[str, int], *, senders: int) -> Iterator[Cluster]:
    """Feeds, each with this number of sites, distributed over this number of senders."""
    prefix = f"bench-{time.time_ns()}"

    def node(name: str, role: str) -> HubNode:
        shared = {"servers": broker.address, "prefix": prefix, "role": role, "replication": 1}
        program = str(built("downburst-node-kafka"))
        # The products must not come from a slower language.
        source = [str(built("downburst-load")), "agent", "--"] if role == "ingest" else []
        options = {"shared_log": shared}
        return HubNode(directory / name, name=name, program=program, prefix=source, options=options).start()

    with ExitStack() as stack:
        ingest = node("ingest", "ingest")
        stack.callback(ingest.stop)
        nodes, sites = [node(f"sender-{number}", "sender") for number in range(senders)], []
        for number, (feed, wanting) in enumerate(feeds.items()):
            ingest.feed(feed, retention_bytes=16_000_000_000)
            sender = nodes[number % senders]
            sender.feed(feed, retention_bytes=16_000_000_000)
            sites += [_site(sender, feed, directory / f"{feed}-{site}.edu") for site in range(wanting)]
        for one in nodes:
            stack.callback(one.stop)
        for site_node in sites:
            stack.callback(site_node.stop)
        yield Cluster(ingest, nodes, sites)


def _site(node: HubNode, feed: str, directory: Path) -> SiteNode:
    site = SiteNode(directory, node.address, arguments=["--no-files"])
    wish = {"feed": feed, "pattern": ".*", "not_pattern": None}
    node.site(directory.name.lower(), wish, token_file=site.token_file)
    site.start()
    wait_for("a subscribed site", lambda: "subscribed" in site.log(), 60)
    return site


def _prepare(node: HubNode, directory: Path, feeds: list[str], products: int, size_bytes: int) -> None:
    """Prepares this number of products of each feed; all are due immediately."""
    planned = (Planned(0, feed, size_bytes, f"{feed} {number:08d}") for number in range(products) for feed in feeds)
    schedule = write(directory / "schedule", planned)
    node.do("load-prepare", schedule=str(schedule), spool=str(directory / "spool"))


def _play(node: HubNode) -> None:
    """Ingests them at full speed, until the last is acknowledged."""
    node.do("load-play", window=WINDOW)
    account = node.wait_event(600, event="load-done")
    if "error" in account or account["refused"]:
        raise RuntimeError(f"the node did not take every product: {account}")


def _head(node: HubNode, feed: str) -> int:
    return next((int(one["head"]) for one in node.do("status")["feeds"] if one["feed"] == feed), 0)


def _clients(broker: Kafka, topic: str, messages: int, size_bytes: int) -> float:
    """Messages a second from one producer to three consumers that read along."""
    argv = [sys.executable, "-m", "bench.distributed.peer"]
    work = [broker.address, topic, str(messages), str(size_bytes)]
    subprocess.run([*argv, "topic", *work], check=True, timeout=60)
    consumers = [
        subprocess.Popen([*argv, "consume", *work], stdout=subprocess.PIPE, text=True) for _ in range(CONSUMERS)
    ]
    for consumer in consumers:
        assert consumer.stdout is not None
        assert consumer.stdout.readline() == "ready\n"
    produced: dict[str, Any] = json.loads(
        subprocess.run([*argv, "produce", *work], check=True, stdout=subprocess.PIPE, text=True, timeout=600).stdout
    )
    ended_s = [float(json.loads(consumer.communicate(timeout=600)[0])["ended_s"]) for consumer in consumers]
    took_s = max(*ended_s, produced["ended_s"]) - produced["began_s"]
    return messages / float(took_s)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.distributed", description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rows", default="1,2,3,4")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--products", type=int, default=40_000)
    parser.add_argument("--markdown", action="store_true")
    return parser.parse_args()


CONSUMERS = 3
WINDOW = 8_192
"""Products in flight: more are acknowledged in groups, and with fewer the node would wait."""
PEER = "librdkafka, 1 producer, 3 consumers"
NEEDED_BYTES = 6_000_000_000

if __name__ == "__main__":
    sys.exit(main())
