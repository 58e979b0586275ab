"""A hub and its parts apart over real servers, with fake nodes. Errors may be planted in each process."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from downburst.domain.alarms import AlarmKind
from downburst.ledger import Ledger
from kit import fake_node, planted, running
from kit.handler_outcomes import outcomes
from kit.kafka import Kafka
from kit.ports import free_port, ports_in_a_row
from kit.postgres import Postgres
from kit.whole_hub import DOWNBURST, WholeHub

COMMANDS = {
    "scheduler": "scheduler",
    "latency service": "latency-service",
    "circuit service": "circuit-service",
    "alarm service": "alarm-service",
    "sender": "sender",
    "fleet": "fleet",
}
"""By process its command."""
LATER = frozenset({"node.line", "node.event"})
"""A first start whose node does not answer is refused with a sentence, as it should be."""
BY_INPUT = frozenset({"kafka.batch"})
"""Not entered by name: what a test sends sets them off."""


class Parts:
    """The scene, in a directory of its own."""

    def __init__(self, home: Path, server: Postgres, broker: Kafka) -> None:
        self.home, self.planted, self.prefix = home, home / "planted", home.name
        self.planted.mkdir()
        # The fleet gives each sender two ports in a row.
        self._sender_port, _ = ports_in_a_row(2)
        self.url = server.url(server.database())
        kafka = f'servers = "{broker.address}"\nprefix = "{self.prefix}"\nproducts = "ingest"\nreplication = 1\n'
        fleet = f'kind = "children"\nat_most = 1\nfirst_port = {self._sender_port}\nstep_s = 0.3\n'
        self._sections = f"[kafka]\n{kafka}[fleet]\n{fleet}[scheduler]\napart = true\n"
        self.hub = WholeHub(home / "hub", ledger_url=self.url)
        self.leave(services=False)

    def leave(self, *, services: bool) -> None:
        """Sets whether the hub's next start leaves receipts, circuits and alarms to separate processes."""
        apart = f"apart = {str(services).lower()}\n"
        self.hub.top = f"latency_{apart}"
        self.hub.more = f"{self._sections}[circuits]\n{apart}[alarms]\nlook_s = 0.2\n{apart}"

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of every process: fake nodes, and the directory of the planted errors."""
        return {"DOWNBURST_NODE": str(_fake_nodes(self.home)), "PLANTED": str(self.planted)}

    def plant(self, command: str, handlers: Iterable[str] = (), *, tasks: Iterable[str] = ()) -> None:
        """Plants errors for the next process of this command."""
        for old in self.planted.glob(f"{command}.*"):
            old.unlink()
        wanted = set(handlers) - BY_INPUT
        lists = {"at_once": sorted(wanted - LATER), "later": sorted(wanted & LATER), "tasks": sorted(tasks)}
        (self.planted / f"{command}.json").write_text(json.dumps(lists))

    def noted(self, command: str, kind: str) -> set[str]:
        """The handlers that a process was thrown into (`thrown`), or entered again (`again`)."""
        path = self.planted / f"{command}.{kind}"
        return set(path.read_text().split()) if path.exists() else set()

    def start(self, command: str) -> "Part":
        """Starts a part with its planted errors."""
        return Part(self.home / f"{command}.log", command, self.hub.write_settings(), self._place_of_a_sender())

    def alarms(self) -> set[str]:
        """The subjects of alarms about errors that no handler expected."""
        ledger = Ledger.look_into(self.url)
        try:
            with ledger.transaction(writes=False) as tx:
                found = tx.alerting.alarms.newest(limit=1_000)
        finally:
            ledger.close()
        return {alarm.subject for alarm in found if alarm.kind is AlarmKind.INTERNAL_FAULT}

    def _place_of_a_sender(self) -> Mapping[str, str]:
        """The place of a sender, as a fleet assigns it to the senders that it starts."""
        place = f"127.0.0.1:{self._sender_port}"
        return {
            "DOWNBURST_DATA_DIR": str(self.home / "sender"),
            "DOWNBURST_SENDER__NAME": "alone",
            "DOWNBURST_SENDER__PUBLIC": place,
            "DOWNBURST_SITES": place,
            "DOWNBURST_HTTP": f"127.0.0.1:{free_port()}",
        }


@dataclass
class Part:
    """One process."""

    log_file: Path
    command: str
    settings: Path
    place: Mapping[str, str]

    def __post_init__(self) -> None:
        argv = [*PLANTED, self.command, "--settings", str(self.settings)]
        environment = os.environ | self.place if self.command == "sender" else os.environ
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, env=environment)
        running.note(self.process)

    def runs(self) -> bool:
        """True if the process runs; otherwise fails with its log."""
        assert self.process.poll() is None, self.log()[-4_000:]
        return True

    def log(self) -> str:
        """The log of the process."""
        return self.log_file.read_text(errors="replace")

    def stop(self) -> None:
        """Requests its end."""
        self.process.terminate()
        assert self.process.wait(60) == 0, self.log()[-4_000:]


def subject(process: str, handler: str) -> str:
    """The subject of an alarm at the hub."""
    names = {"sender": f"sender {socket.gethostname()}-0", "hub on Kafka": ""}
    place = names.get(process, f"{process} on {socket.gethostname()}")
    return f"{handler} of the {place}" if place else handler


def show(process: str, alarms: set[str]) -> None:
    """Prints the outcome for each handler of a process."""
    for handler in sorted(outcomes().of(process, "goes on")):
        said = "set aside, alarm" if subject(process, handler) in alarms else "NO ALARM"
        print(f"{process:16} {handler:28} {said}")


def _fake_nodes(home: Path) -> Path:
    script = f"#!/bin/sh\nexec {sys.executable} {fake_node.__file__} --talkative\n"
    for name in ("downburst-node", "downburst-node-kafka"):
        if not (home / name).exists():
            (home / name).write_text(script)
            (home / name).chmod(0o755)
    return home / "downburst-node"


PLANTED = (sys.executable, planted.__file__, DOWNBURST)
