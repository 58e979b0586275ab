"""Multicast programs from Debian packages, and their installation: UDPcast, and NORM through its library."""

import os
import shutil
import subprocess
from pathlib import Path

from bench.harness.delivery import HUB
from bench.peers.file_peer import FilePeer, Process, first_data_s
from bench.peers.tools import PEERS
from kit.namespaces import Lab


class Udpcast(FilePeer):
    """`udp-sender` and `udp-receiver`, in clear and without digests; the slowest receiver sets the pace."""

    def __init__(self, lab: Lab, directory: Path, rate_bps: int | None) -> None:
        super().__init__(lab, directory)
        self._rate = [] if rate_bps is None else ["--max-bitrate", f"{rate_bps // 1000}k"]

    def start_receivers(self) -> dict[str, Process]:
        """They find the sender themselves; it waits for all of them."""
        argv = ["udp-receiver", *_UDPCAST, "--rcvbuf", str(BUFFER_BYTES)]
        return {host: self.start(host, [*argv, "--file", str(path)]) for host, path in self.files.items()}

    def send(self) -> tuple[Process, float]:
        """Without the repeated hello, a lost handshake leaves the whole session hanging."""
        # A site that missed the start is given up after the usual number of repeats, and counts as incomplete.
        handshake = ["--min-receivers", str(len(self.files)), "--rexmit-hello-interval", "500", "--max-wait", "10"]
        argv = ["udp-sender", *_UDPCAST, "--full-duplex", *handshake, *self._rate]
        sender = self.start(HUB, [*argv, "--file", str(self.source)])
        return sender, first_data_s(sender, self.sent_before)


class Norm(FilePeer):
    """A program of ours on NRL's library: a fixed rate without its congestion control, acknowledged by all sites."""

    def __init__(self, lab: Lab, directory: Path, rate_bps: int | None) -> None:
        super().__init__(lab, directory)
        self.files = {host: path.with_name("received") for host, path in self.files.items()}
        self._rate_bps = rate_bps or FASTEST_NORM_BPS

    def start_receivers(self) -> dict[str, Process]:
        """Wait until all have joined."""
        program = [str(PEERS / "norm-fan-out"), "receive", *_NORM]
        return {
            host: self.start_ready(host, [*program, str(number), str(path.parent)])
            for number, (host, path) in enumerate(self.files.items(), start=2)
        }

    def send(self) -> tuple[Process, float]:
        """The sender ends when all have acknowledged the file."""
        program = [str(PEERS / "norm-fan-out"), "send", *_NORM, str(len(self.files)), str(self._rate_bps)]
        sender = self.start(HUB, [*program, str(self.source)])
        return sender, first_data_s(sender, self.sent_before)


def has_package(program: str, package: str, notes: list[str]) -> bool:
    """Install a program if it is missing; a note reports a failure."""
    if not shutil.which(program):
        _install(package)
    if shutil.which(program):
        return True
    notes.append(f"{program} is not installed and can't be (apt-get install {package}): its rows are left out.")
    return False


def has_norm(notes: list[str]) -> bool:
    """Build the program that uses NRL's library; a note reports a failure."""
    program = PEERS / "norm-fan-out"
    if program.exists() and program.stat().st_mtime >= _NORM_SOURCE.stat().st_mtime:
        return True
    if not Path("/usr/include/normApi.h").exists():
        _install("libnorm-dev")
    PEERS.mkdir(parents=True, exist_ok=True)
    argv = ["c++", "-O2", "-std=c++17", "-o", str(program), str(_NORM_SOURCE), "-lnorm", "-lpthread"]
    built = subprocess.run(argv, capture_output=True, text=True, check=False)
    if built.returncode:
        notes.append(f"NORM could not be built (libnorm-dev), its rows are left out: {built.stderr.strip()[-200:]}")
    return not built.returncode


def _install(package: str) -> None:
    if shutil.which("apt-get"):
        argv = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(argv, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)


BUFFER_BYTES = 4 << 20
FASTEST_NORM_BPS = 400_000_000
"""Its best on two cores; at higher rates the slower receivers lose packets, and goodput falls."""
_UDPCAST = ["--interface", "eth0", "--nokbd", "--portbase", "7410", "--mcast-rdv-address", "239.77.5.1"]
_NORM = ["239.77.4.1", "7420"]
_NORM_SOURCE = Path(__file__).with_name("norm") / "norm_fan_out.cpp"
