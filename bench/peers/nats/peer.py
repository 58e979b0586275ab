"""NATS as a peer: core NATS, which keeps nothing, and JetStream, which does. Server and client are NATS' own."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from bench.harness.counters import cpu_s
from bench.harness.delivery import HUB
from bench.harness.fan_out import FanOut, Stream
from bench.peers.consumers import Consumers
from bench.peers.tools import PEERS
from kit.namespaces import Lab
from kit.patience import wait_for


class Nats:
    """A server in the hub's namespace, a subscriber in each site's, in clear; messages are counted and dropped."""

    def __init__(self, kind: Literal["core", "jetstream"]) -> None:
        self.name = {"core": "NATS", "jetstream": "NATS JetStream"}[kind]
        self._kind = kind

    def fan_out(self, lab: Lab, directory: Path, stream: Stream) -> FanOut:
        """Publish to connected subscribers (core), or let consumers fetch the stream (JetStream)."""
        with nats_server(lab, directory) as server:
            if self._kind == "jetstream":
                self._publish(lab, stream)
            with Consumers(lab, self._argv(lab, "consume", stream)) as consumers:
                before_s = cpu_s([server.pid])
                consumers.go()
                published = self._publish(lab, stream) if self._kind == "core" else None
                consumed = consumers.wait()
            spent_s = cpu_s([server.pid]) - before_s + consumed.cpu_s
        consumed.needs(stream.products)
        began_us = published["began_us"] if published else consumed.began_us
        sites = len(lab.hosts) - 1
        return FanOut(stream.products, stream.product_bytes, sites, (consumed.ended_us - began_us) / 1e6, spent_s)

    def _publish(self, lab: Lab, stream: Stream) -> dict[str, float]:
        account: dict[str, float] = json.loads(lab.output(HUB, self._argv(lab, "publish", stream), timeout_s=120))
        return account

    def _argv(self, lab: Lab, role: str, stream: Stream) -> list[str]:
        client, url = str(PEERS / "nats-fan-out"), f"nats://{lab.address(HUB)}:{PORT}"
        return [client, role, self._kind, url, str(stream.products), str(stream.product_bytes)]


def install_nats(notes: list[str]) -> list[Nats]:
    """Both kinds, or none where they can't be built."""
    return [Nats("core"), Nats("jetstream")] if has_nats(notes) else []


def has_nats(notes: list[str]) -> bool:
    """Build server and client of the locked versions where they are missing; a note reports a failure."""
    client = PEERS / "nats-fan-out"
    is_current = client.exists() and client.stat().st_mtime >= (_SOURCE / "main.go").stat().st_mtime
    if not (PEERS / "nats-server").exists() or not is_current:
        if shutil.which("go") is None:
            notes.append("Go is not installed (https://go.dev/dl): the rows of NATS are left out.")
            return False
        PEERS.mkdir(parents=True, exist_ok=True)
        argv = ["go", "build", "-mod=readonly", "-o", f"{PEERS}/", ".", "github.com/nats-io/nats-server/v2"]
        built = subprocess.run(argv, cwd=_SOURCE, capture_output=True, text=True, check=False)
        if built.returncode:
            notes.append(f"NATS could not be built, its rows are left out: {built.stderr.strip()[-300:]}")
            return False
    return True


@contextmanager
def nats_server(lab: Lab, directory: Path) -> Iterator[subprocess.Popen[str]]:
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / "nats.conf"
    config.write_text(_CONFIG.format(address=lab.address(HUB), port=PORT, store=directory / "store"))
    with (directory / "nats.log").open("w") as log:
        server = lab.run(HUB, [str(PEERS / "nats-server"), "-c", str(config)], stdout=log, stderr=log)
    try:
        wait_for("NATS server", lambda: _accepts(lab), seconds=30)
        yield server
    finally:
        server.terminate()
        server.wait(timeout=20)


def _accepts(lab: Lab) -> bool:
    listening = lab.output(HUB, ["cat", "/proc/net/tcp", "/proc/net/tcp6"])
    return f":{PORT:04X} " in listening


PORT = 4222
_SOURCE = Path(__file__).parent
_CONFIG = """
listen: "{address}:{port}"
# A subscriber that is slower than the publisher for a moment is not cut off: that would be no fair comparison.
max_pending: 4GB
jetstream {{ store_dir: "{store}", max_file_store: 16GB, max_memory_store: 1GB }}
"""
