"""Peers of our own that lack parts of a real product: multicast without repair, and a TLS connection per site."""

import json
from pathlib import Path

from bench.harness.delivery import HUB
from bench.peers.file_peer import FilePeer, Process, line
from kit.namespaces import Lab
from kit.programs import built


class Blaster(FilePeer):
    """Trains of datagrams as fast as the sender can, into buffers that hold the whole file: the machine's limit."""

    def __init__(self, lab: Lab, directory: Path, *, like_us: bool) -> None:
        """With `like_us` it encrypts and hashes as well."""
        super().__init__(lab, directory)
        self._sender = ["--seal"] if like_us else []
        self._receiver = ["--seal", "--hash"] if like_us else []

    def start_receivers(self) -> dict[str, Process]:
        """Wait until all have joined."""
        argv = [*_argv("blast"), "receive", "--group", GROUP, "--bytes", str(self.product_bytes), *self._receiver]
        return {host: self.start_ready(host, [*argv, "--file", str(path)]) for host, path in self.files.items()}

    def send(self) -> tuple[Process, float]:
        """The first train leaves as soon as the sender runs."""
        argv = [*_argv("blast"), "send", "--group", GROUP, "--file", str(self.source), *self._sender]
        sender = self.start(HUB, argv)
        self.ended(sender)
        return sender, json.loads(line(sender))["began_us"] / 1e6


class TlsFanOut(FilePeer):
    """The present practice: a TLS connection per site, AES-256-GCM, a digest by the sender, checked by sites."""

    def start_receivers(self) -> dict[str, Process]:
        """Wait until all connections are up."""
        certificate, address = str(self.directory / "certificate"), f"{self.lab.address(HUB)}:{PORT}"
        shared = ["--certificate", certificate]
        argv = [*_argv("tls-fan-out"), "send", "--listen", address, *shared, "--receivers", str(len(self.files))]
        self._sender = self.start_ready(HUB, [*argv, "--file", str(self.source)])
        argv = [*_argv("tls-fan-out"), "receive", "--from", address, *shared]
        receivers = {host: self.start(host, [*argv, "--file", str(path)]) for host, path in self.files.items()}
        for said in map(line, (self._sender, *receivers.values())):
            if said not in {"connected", "ready"}:
                raise RuntimeError(f"the TLS fan-out did not connect; see {self.directory}")
        return receivers

    def send(self) -> tuple[Process, float]:
        """Send the start signal."""
        assert self._sender.stdin
        self._sender.stdin.write("go\n")
        self._sender.stdin.flush()
        self.ended(self._sender)
        return self._sender, json.loads(line(self._sender))["began_us"] / 1e6


def _argv(program: str) -> list[str]:
    return [str(built("downburst-load")), program]


GROUP = "239.77.3.1:7400"
PORT = 7401
