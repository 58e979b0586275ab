"""Records rates of real TCP connections while their path changes; needs root.

    python -m kit.path_rates TRACE FOLDER [RECORDING...]

The recordings judge the forecasts of path rates (`tests/golden/path-rates`). The hub sends over a wire with a delay,
a router and a line of limited rate to a site. The line's rate, its loss or its other traffic changes from regime to
regime. Three recordings read the kernel's delivery rate ten times a second, one reads it each second (a hub reads it
every five), and one times transfers of products, whose sizes are those of a recorded feed (TRACE: one product a line,
which begins with its size).
"""

import csv
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kit.flows import TCP_NOTSENT_LOWAT, Flows
from kit.namespaces import Lab
from kit.wire import Lane, Wire


@dataclass(frozen=True)
class Regime:
    """The state of the line for some time."""

    name: str
    rate_bps: int = 30_000_000
    loss_percent: float = 0.0
    neighbours: int = 0
    """Greedy connections of another host on the same line."""


@dataclass(frozen=True)
class Row:
    """A measured rate; without a size it is the kernel's rate of a connection that always had more to send."""

    regime: str
    at_ms: int
    size_bytes: int | None
    rate_bps: int


@dataclass(frozen=True)
class Recording:
    """Regimes in their order, and how each is measured."""

    name: str
    regimes: Sequence[Regime]
    seconds: float = 0.0
    """The length of each regime; 0: it has a number of transfers."""
    every_s: float = 0.1


RECORDINGS = (
    Recording(
        "rate", (Regime("40 Mb/s", 40_000_000), Regime("12 Mb/s", 12_000_000), Regime("28 Mb/s", 28_000_000)), 8
    ),
    Recording("loss", (Regime("none"), Regime("0.5 %", loss_percent=0.5), Regime("0.05 %", loss_percent=0.05)), 8),
    Recording("neighbours", (Regime("alone"), Regime("beside three", neighbours=3), Regime("alone again")), 8),
    Recording(
        "seconds",
        (Regime("alone"), Regime("beside two", neighbours=2), Regime("12 Mb/s", 12_000_000), Regime("alone again")),
        40,
        every_s=1.0,
    ),
    Recording("transfers", (Regime("alone"), Regime("0.5 %", loss_percent=0.5), Regime("beside one", neighbours=1))),
)
ROUND_TRIP_MS = 40
TRANSFERS = 100
"""In each regime."""


def record(what: Recording, sizes: Sequence[int]) -> Iterator[Row]:
    """One recording, in a lab of its own."""
    with Lab(["hub", "router", "site", "neighbour"]) as lab, _connection(lab) as connection:
        began_s = time.monotonic()
        measure = _greedy(connection, what) if what.seconds else _transfers(connection, sizes)
        for regime in what.regimes:
            with _line(lab, regime):
                for size_bytes, rate_bps in measure():
                    at_ms = round((time.monotonic() - began_s) * 1e3)
                    yield Row(regime.name, at_ms, size_bytes, rate_bps)


@contextmanager
def _connection(lab: Lab) -> Iterator[socket.socket]:
    """A connection from the hub to the site, over the wire and the line."""
    lane = Lane(rate_bps=100_000_000, delay_ms=ROUND_TRIP_MS / 2, buffer_bytes=1_000_000)
    with Wire(lab, "hub", "router", to_right=lane, to_left=lane) as wire:
        site = lab.address("site")
        lab.output("router", ["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])
        lab.output("hub", ["ip", "route", "add", f"{site}/32", "via", wire.right_address])
        lab.output("site", ["ip", "route", "add", f"{wire.left_address}/32", "via", lab.address("router")])
        with lab.inside("site"):
            server = socket.create_server((site, 0))
        threading.Thread(target=_receive, args=(server,), daemon=True).start()
        with lab.inside("hub"):
            connection = socket.socket()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        connection.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, 1 << 17)
        connection.connect(server.getsockname())
        with server, connection:
            yield connection


def _receive(server: socket.socket) -> None:
    """Answers the last byte of each message: eight bytes of length, then as many bytes."""
    with suppress(OSError), server.accept()[0] as taken:
        buffer = bytearray(1 << 18)
        while True:
            header = taken.recv(8, socket.MSG_WAITALL)
            left = int.from_bytes(header) if len(header) == 8 else 0
            if left == 0:
                return
            while left > 0:
                left -= taken.recv_into(buffer, min(left, len(buffer))) or left
            taken.send(b"+")


@contextmanager
def _line(lab: Lab, regime: Regime) -> Iterator[None]:
    lab.rate("site", down_bps=regime.rate_bps)
    lab.loss("site", regime.loss_percent, protocols=("tcp",))
    if not regime.neighbours:
        yield
        return
    with Flows(lab, "neighbour", "site", lab.address("site"), flows=regime.neighbours, control="cubic"):
        yield


Measure = Callable[[], Iterator[tuple[int | None, int]]]


def _greedy(connection: socket.socket, what: Recording) -> Measure:
    """Sends without end, and reads the kernel's delivery rate in steps; the first second of all is left out."""
    threading.Thread(target=_send_all, args=(connection,), daemon=True).start()
    time.sleep(1)

    def measure() -> Iterator[tuple[int | None, int]]:
        end_s = time.monotonic() + what.seconds
        while time.monotonic() < end_s:
            time.sleep(what.every_s)
            rate_bps, is_lower_bound = _delivery(connection)
            if not is_lower_bound:
                yield None, rate_bps

    return measure


def _send_all(connection: socket.socket) -> None:
    content = bytes(1 << 16)
    with suppress(OSError):
        connection.sendall((1 << 62).to_bytes(8))
        while True:
            connection.sendall(content)


def _delivery(connection: socket.socket) -> tuple[int, bool]:
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 168)
    (rate_bytes_per_s,) = struct.unpack_from("=Q", info, 160)
    return rate_bytes_per_s * 8, bool(info[7] & 1)


def _transfers(connection: socket.socket, sizes: Sequence[int]) -> Measure:
    """Products one after the other; the rate of each from its first byte to the site's answer to its last."""
    coming = iter(sizes)

    def measure() -> Iterator[tuple[int | None, int]]:
        for _ in range(TRANSFERS):
            size_bytes = next(coming)
            began_s = time.monotonic()
            connection.sendall(size_bytes.to_bytes(8) + bytes(size_bytes))
            connection.recv(1)
            yield size_bytes, round(size_bytes * 8 / (time.monotonic() - began_s))

    return measure


def _sizes(trace: Path) -> list[int]:
    """Every fortieth product of the feed: neighbours in the trace are often of one kind."""
    lines = trace.read_text().splitlines()[::40]
    return [int(line.split()[0]) for line in lines]


def main() -> None:
    """Writes a file for each recording, or for those named."""
    trace, folder, names = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    folder.mkdir(parents=True, exist_ok=True)
    sizes = _sizes(trace)
    for what in (one for one in RECORDINGS if not names or one.name in names):
        rows = list(record(what, sizes))
        with (folder / f"{what.name}.csv").open("w", newline="") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(("regime", "at_ms", "size_bytes", "rate_bps"))
            writer.writerows((row.regime, row.at_ms, row.size_bytes or "", row.rate_bps) for row in rows)
        print(what.name, len(rows), flush=True)


if __name__ == "__main__":
    main()
