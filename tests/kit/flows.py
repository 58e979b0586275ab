"""Plain TCP flows that send all they can: `python -m kit.flows receive|send`, each end one process.

A sender tells of each flow what was acknowledged, in how long, and how many segments it had to send again.
"""

import argparse
import json
import selectors
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kit.namespaces import Lab


class Flows:
    """Greedy flows between two hosts of a lab, for the duration of the block, or for a number of seconds."""

    def __init__(self, lab: Lab, sender: str, receiver: str, address: str, **options: Any) -> None:
        self.lab, self.sender, self.receiver, self.address = lab, sender, receiver, address
        self.options = [f"--{name}={value}" for name, value in options.items()]

    def __enter__(self) -> Self:
        self._into = self._start(self.receiver, "receive", self.address)
        line = self._into.stdout.readline() if self._into.stdout else ""
        assert line.startswith("ready "), f"the receiving end did not start: {line!r}"
        self._out = self._start(self.sender, "send", self.address, f"--port={line.split()[1]}", *self.options)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in (self._out, self._into):
            process.kill()
            process.wait(timeout=10)
            if process.stdout:
                process.stdout.close()

    def told(self) -> list[dict[str, float]]:
        """The result of each flow, after the end of its time."""
        found: list[dict[str, float]] = json.loads(self._out.communicate(timeout=120)[0])
        return found

    def _start(self, host: str, *arguments: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "-m", "kit.flows", *arguments]
        return self.lab.run(host, argv, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1])


def receive(address: str) -> None:
    """Take all data, until killed."""
    with socket.create_server((address, 0), backlog=64) as server, selectors.DefaultSelector() as ready:
        print("ready", server.getsockname()[1], flush=True)
        ready.register(server, selectors.EVENT_READ)
        buffer = bytearray(1 << 18)
        while True:
            for key, _ in ready.select():
                if key.fileobj is server:
                    ready.register(server.accept()[0], selectors.EVENT_READ)
                elif not key.fileobj.recv_into(buffer):  # type: ignore[union-attr]
                    ready.unregister(key.fileobj)


def send(address: str, port: int, *, flows: int, seconds: float, control: str) -> None:
    """Send on all flows for some time, and print their results."""
    began_s, content = time.monotonic(), bytes(1 << 16)
    with selectors.DefaultSelector() as ready:
        sockets = [_connected(address, port, control) for _ in range(flows)]
        for each in sockets:
            ready.register(each, selectors.EVENT_WRITE)
        while time.monotonic() - began_s < seconds:
            for key, _ in ready.select(0.1):
                key.fileobj.send(content)  # type: ignore[union-attr]
        print(json.dumps([_told(each, time.monotonic() - began_s) for each in sockets]), flush=True)


def _connected(address: str, port: int, control: str) -> socket.socket:
    connection = socket.socket()
    if control:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    # The acknowledged bytes are those sent; data that waits in this buffer must not count.
    connection.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, 1 << 17)
    connection.connect((address, port))
    connection.setblocking(False)
    return connection


def _told(connection: socket.socket, seconds: float) -> dict[str, float]:
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    (again,), (acknowledged,) = struct.unpack_from("=I", info, 100), struct.unpack_from("=Q", info, 120)
    return {"bps": acknowledged * 8 / seconds, "sent_again": again, "seconds": seconds}


def main() -> None:
    """One end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=("receive", "send"))
    parser.add_argument("address")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--flows", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--control", default="", help="congestion control; default: the machine's")
    wanted = parser.parse_args()
    if wanted.role == "receive":
        receive(wanted.address)
    else:
        send(wanted.address, wanted.port, flows=wanted.flows, seconds=wanted.seconds, control=wanted.control)


TCP_NOTSENT_LOWAT = 25

if __name__ == "__main__":
    main()
