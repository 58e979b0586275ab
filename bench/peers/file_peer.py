"""Peers that bring one file to the sites by a process each: their common procedure and measurements."""

import os
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from bench.harness.counters import cpu_s, link_bytes, moved, sent_by
from bench.harness.delivery import HUB, Delivery, digest, file_stands_s, source_file
from kit.namespaces import Lab

Process = subprocess.Popen[str]


class FilePeer(ABC):
    """Receivers are ready before the sender begins; time runs from the first data to a site's finished file."""

    def __init__(self, lab: Lab, directory: Path) -> None:
        self.lab, self.directory = lab, directory
        self.source = directory / "original"
        self.files = {host: directory / host / self.source.name for host in lab.hosts if host != HUB}
        for path in self.files.values():
            path.parent.mkdir(parents=True)
        self.product_bytes, self.sent_before = 0, 0
        """The bytes that the sender's host had sent before this run."""
        self._started: list[Process] = []

    @abstractmethod
    def start_receivers(self) -> dict[str, Process]:
        """Start a receiver per site, and return when all are ready."""

    @abstractmethod
    def send(self) -> tuple[Process, float]:
        """Send the source; give the sender, which has ended and is not reaped yet, and the time of its first data."""

    def deliver(self, product_bytes: int) -> Delivery:
        """Send a file of this number of bytes."""
        self.product_bytes = product_bytes
        source_file(self.source, product_bytes)
        end = threading.Timer(PATIENCE_S, self.stop)
        end.start()
        try:
            return self._measured()
        finally:
            end.cancel()

    def stop(self) -> None:
        """End all remaining processes."""
        for process in self._started:
            if process.poll() is None:
                process.kill()

    def start(self, host: str, argv: Sequence[str]) -> Process:
        """Run a program at a host, with pipes at its stdin and stdout; its stderr goes to a file."""
        with (self.directory / f"{host}.log").open("a") as log:
            process = self.lab.run(host, argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self._started.append(process)
        return process

    def start_ready(self, host: str, argv: Sequence[str]) -> Process:
        """Run a program that prints `ready` when it is ready."""
        process = self.start(host, argv)
        if (said := line(process)) != "ready":
            raise RuntimeError(f"{argv[0]} at {host} was not ready but said {said!r}; {self._complaint(host)}")
        return process

    def ended(self, sender: Process) -> None:
        """Wait for the sender's end, without reaping it, and fail if it failed."""
        info = os.waitid(os.P_PID, sender.pid, os.WEXITED | os.WNOWAIT)
        if info and info.si_status:
            raise RuntimeError(f"the sender ended with {info.si_status}: {self._complaint(HUB)}")

    def _measured(self) -> Delivery:
        receivers = self.start_receivers()
        pids = [process.pid for process in receivers.values()]
        links, spent_s = link_bytes(self.lab), cpu_s(pids)
        self.sent_before = links[HUB].sent
        sender, began_s = self.send()
        for process in receivers.values():
            line(process)  # The receiver's report, or the end of its output.
        spent_s = cpu_s([*pids, sender.pid]) - spent_s
        links = moved(link_bytes(self.lab), links)
        for process in (sender, *receivers.values()):
            process.communicate()
        return Delivery(self.product_bytes, self._took_s(began_s), spent_s, links)

    def _took_s(self, began_s: float) -> dict[str, float]:
        expected = digest(self.source)
        right = (host for host, path in self.files.items() if path.exists() and digest(path) == expected)
        return {host: file_stands_s(self.files[host]) - began_s for host in right}

    def _complaint(self, host: str) -> str:
        return (self.directory / f"{host}.log").read_text().strip()[-300:]


def line(process: Process) -> str:
    """The next line that a process prints, or an empty one at its end."""
    assert process.stdout
    return process.stdout.readline().strip()


def first_data_s(sender: Process, sent_before: int) -> float:
    """Wait for the sender's end without reaping it; give the time at which its host had sent 64 kB."""
    program = Path(str(sender.args[4])).name if isinstance(sender.args, list) else ""
    began_s = 0.0
    while os.waitid(os.P_PID, sender.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if not began_s and sent_by_program(sender.pid, program) >= sent_before + REGISTRATION_BYTES:
            began_s = time.time()
        time.sleep(0.02 if began_s else 0.001)
    if not began_s:
        raise RuntimeError(f"{program} ended before it sent data")
    return began_s


def sent_by_program(pid: int, program: str) -> int:
    """Bytes that its host has sent; 0 while it is not in the host yet, or if it has just ended."""
    try:
        # The first reading after `ip netns exec` may be that of the machine's own namespace.
        return sent_by(pid) if Path(f"/proc/{pid}/comm").read_text().strip() == program[:15] else 0
    except (OSError, ValueError):
        return 0


PATIENCE_S = 150.0
"""For a whole run; data later than this will not arrive."""
REGISTRATION_BYTES = 64_000
