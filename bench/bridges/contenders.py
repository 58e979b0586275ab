"""The programs that take notifications: a hub with its node, wis2downloader and pywis-pubsub."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bench.bridges.scene import Scene
from downburst.domain.bridges import State
from downburst.ledger import Ledger
from kit.patience import wait_for
from kit.peers.found import prepared
from kit.ports import free_port
from kit.whole_hub import WholeHub

FILTER = "cache/a/wis2/#"


@dataclass(frozen=True)
class Reader:
    """A program that is subscribed."""

    pid: int
    done: Callable[[], int]
    """The number of files that it has stored, or of notifications that it has recorded; takes none of its time."""


Start = Callable[[Path, Scene], AbstractContextManager[Reader]]
"""Starts a contender with a directory of its own."""


@contextmanager
def hub_that_fetches(directory: Path, scene: Scene) -> Iterator[Reader]:
    """A hub that fetches each product, verifies it and stores it in the log of a feed."""
    with _hub(directory, scene, State.HELD, {}) as reader:
        yield reader


@contextmanager
def hub_that_records(directory: Path, scene: Scene) -> Iterator[Reader]:
    """A hub that judges notifications and records them; products wait, as their centre has no bytes left."""
    with _hub(directory, scene, State.WAITING, {"bytes_per_day": 1}) as reader:
        yield reader


@contextmanager
def _hub(directory: Path, scene: Scene, state: State, limits: Mapping[str, int]) -> Iterator[Reader]:
    hub = WholeHub(
        directory / "hub", top="max_product_bytes = 1000000000", more="[alarms]\nheartbeat_s = 0\n"
    ).start()
    try:
        hub.ask("POST", "/v1/feeds", json={"feed": "WIS2", "retention_bytes": 16_000_000_000})
        wanted: dict[str, Any] = {
            "bridge": "wis2",
            "feed": "WIS2",
            "brokers": [{"url": scene.broker.url}],
            "topics": [FILTER],
            **limits,
        }
        hub.ask("POST", "/v1/bridges", json=wanted | {"may_ask_private": True})
        wait_for("a subscription", lambda: hub.ask("GET", "/v1/bridges/wis2")["brokers"][0]["bound"])
        ledger_url = f"sqlite:///{hub.directory / 'data' / 'ledger.sqlite'}"
        with closing(Ledger.look_into(ledger_url)) as ledger:
            yield Reader(hub.process.pid, lambda: _count(ledger, state))
    finally:
        hub.stop()


def _count(ledger: Ledger, state: State) -> int:
    with ledger.transaction(writes=False) as tx:
        return tx.wis2.notices.count("wis2").get(state, 0)


@contextmanager
def wis2downloader(directory: Path, scene: Scene) -> Iterator[Reader]:
    """wis2downloader 0.3.2: verifies length and digest, writes a file for each product, keeps no record."""
    (gunicorn,) = prepared("wis2downloader/bin/gunicorn")
    directory.mkdir(parents=True)
    stored, port = directory / "stored", free_port()
    stored.mkdir()
    settings = {
        "base_url": f"http://127.0.0.1:{port}", "broker_hostname": "127.0.0.1", "broker_port": scene.broker.port,
        "broker_username": "everyone", "broker_password": "everyone", "broker_protocol": "tcp",
        "download_workers": WORKERS, "download_dir": str(stored), "min_free_space": 0, "validate_topics": False,
        "log_level": "ERROR", "save_logs": False, "log_path": str(directory),
        "mqtt_session_info": str(directory / "session.json"), "flask_host": "127.0.0.1", "flask_port": port,
    }  # fmt: skip
    (directory / "config.json").write_text(json.dumps(settings))
    argv = [str(gunicorn), "--bind", f"127.0.0.1:{port}", "wis2downloader.app:app"]
    environment = {"WIS2DOWNLOADER_CONFIG": str(directory / "config.json")}
    with _running(argv, directory, environment) as process, httpx.Client(timeout=30) as client:
        wait_for("wis2downloader", lambda: _answers(client, f"{settings['base_url']}/health"))
        client.post(f"{settings['base_url']}/subscriptions", json={"topic": FILTER}).raise_for_status()
        wait_for("its subscription", scene.is_bound)
        yield Reader(process.pid, lambda: sum(len(files) for _, _, files in os.walk(stored)))


@contextmanager
def pywis(directory: Path, scene: Scene) -> Iterator[Reader]:
    """pywis-pubsub, which validates notifications by its suite; a hook writes each into a file, without a flush."""
    program, home = prepared("pywis-pubsub/venv/bin/pywis-pubsub", "pywis-pubsub/home")
    directory.mkdir(parents=True)
    kept = directory / "kept"
    (directory / "bench_hook.py").write_text(HOOK.format(kept=str(kept)))
    (directory / "pywis.yml").write_text(
        f"broker: mqtt://everyone:everyone@127.0.0.1:{scene.broker.port}\nqos: 1\nsubscribe_topics:\n  - {FILTER}\n"
        "validate_message: true\nhook: bench_hook.Keep\n"
    )
    argv = [str(program), "subscribe", "-c", str(directory / "pywis.yml")]
    environment = {"HOME": str(home), "PYTHONPATH": str(directory), "PYTHONUNBUFFERED": "1"}
    with _running(argv, directory, environment) as process:
        wait_for("its subscription", scene.is_bound)
        yield Reader(process.pid, lambda: kept.read_bytes().count(b"\n") if kept.exists() else 0)


@contextmanager
def _running(argv: list[str], directory: Path, more: Mapping[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | dict(more)
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log, env=environment, cwd=directory)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=30)


def _answers(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(url).is_success
    except httpx.TransportError:
        return False


WORKERS = 8
HOOK = """\
import json
from pywis_pubsub.hook import Hook

KEPT = open({kept!r}, "a", buffering=1)


class Keep(Hook):
    def execute(self, topic, msg_dict):
        KEPT.write(json.dumps(msg_dict) + "\\n")
"""
