"""A relay that changes one byte of each tunnel on its way to a site: `python -m kit.tampering LISTEN FLIPS_AT`.

It makes tunnels to any target, says `ready` once it listens, and `flipped` once it has changed a byte.
"""

import argparse
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from kit.namespaces import Lab
from kit.patience import wait_for


class TamperingRelay:
    """Such a relay in a host of a lab, for the duration of the block."""

    def __init__(self, lab: Lab, host: str, *, flips_at_bytes: int, log_file: Path) -> None:
        self.address = f"{lab.address(host)}:7379"
        self._argv = lab.command(host, [sys.executable, "-m", "kit.tampering", self.address, str(flips_at_bytes)])
        self._log_file = log_file

    def __enter__(self) -> Self:
        with self._log_file.open("wb") as log:
            self._process = subprocess.Popen(self._argv, stdout=log, cwd=Path(__file__).parents[1])
        wait_for("a relay that tampers", lambda: "ready" in self._log_file.read_text())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(timeout=10)

    @property
    def flipped(self) -> bool:
        """True once the byte is changed."""
        return "flipped" in self._log_file.read_text()


class _Tunnel:
    def __init__(self, flips_at_bytes: int) -> None:
        self._left = flips_at_bytes

    def change(self, piece: bytes) -> bytes:
        """Changes the one byte if it is in this piece."""
        at, self._left = self._left, self._left - len(piece)
        if not 0 <= at < len(piece):
            return piece
        print("flipped", flush=True)
        return piece[:at] + bytes([piece[at] ^ 1]) + piece[at + 1 :]

    def serve(self, site: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += site.recv(1)
        host, port = head.split()[1].decode().rsplit(":", 1)
        hub = socket.create_connection((host, int(port)))
        site.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        threading.Thread(target=_pump, args=(site, hub, bytes), daemon=True).start()
        _pump(hub, site, self.change)


def _pump(from_: socket.socket, to: socket.socket, change: Callable[[bytes], bytes]) -> None:
    # A connection that breaks is the tunnel's end.
    with suppress(OSError):
        while piece := from_.recv(1 << 16):
            to.sendall(change(piece))
    for end in (from_, to):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def main() -> None:
    """Serves until it is killed."""
    parser = argparse.ArgumentParser(prog="kit.tampering", description=__doc__)
    parser.add_argument("listen")
    parser.add_argument("flips_at_bytes", type=int)
    wanted = parser.parse_args()
    host, port = wanted.listen.rsplit(":", 1)
    with socket.create_server((host, int(port))) as listener:
        print("ready", flush=True)
        while True:
            site, _ = listener.accept()
            tunnel = _Tunnel(wanted.flips_at_bytes)
            threading.Thread(target=tunnel.serve, args=(site,), daemon=True).start()


if __name__ == "__main__":
    main()
