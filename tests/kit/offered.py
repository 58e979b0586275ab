"""A steady flow of numbered datagrams through a circuit, and their arrivals with marks."""

import math
import socket
import statistics
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kit.namespaces import Lab


@dataclass(frozen=True)
class Arrived:
    """A datagram that came."""

    at_s: float
    dscp: int


@dataclass
class Offered:
    """The sent and received datagrams of a flow."""

    sent_at_s: list[float] = field(default_factory=list)
    arrived: list[Arrived] = field(default_factory=list)

    @property
    def arrived_at_s(self) -> list[float]:
        """The time of each arrival."""
        return [one.at_s for one in self.arrived]

    def marked_share(self) -> float:
        """The share of arrived datagrams with the mark of less than best effort, from the first marked one on."""
        marks = [one.dscp for one in self.arrived]
        assert set(marks) <= {0, LESS_THAN_BEST_EFFORT}, sorted(set(marks))
        if LESS_THAN_BEST_EFFORT not in marks:
            return 0.0
        late = marks[marks.index(LESS_THAN_BEST_EFFORT) :]
        return late.count(LESS_THAN_BEST_EFFORT) / len(late)


def mean_bps(at_s: list[float], begin_s: float, end_s: float) -> float:
    """The rate of datagrams at these times, in bits of frames on the port per second."""
    return sum(begin_s <= one_s < end_s for one_s in at_s) * FRAME_BYTES * 8 / (end_s - begin_s)


def median_bps(at_s: list[float], begin_s: float, end_s: float) -> float:
    """The same, as the median over quarter seconds: a thread that waits for a processor changes few of them."""
    windows = round((end_s - begin_s) / WINDOW_S)
    counts = [0] * windows
    for one_s in at_s:
        window = math.floor((one_s - begin_s) / WINDOW_S)
        if 0 <= window < windows:
            counts[window] += 1
    return statistics.median(counts) * FRAME_BYTES * 8 / WINDOW_S


def number_in(frame: bytes) -> int | None:
    """The number of a datagram in a frame; None: the frame has none."""
    if len(frame) != FRAME_BYTES - 50 or struct.unpack_from("!H", frame, 36)[0] != PORT:
        return None
    return int.from_bytes(frame[42:46])


def offer(lab: Lab, sender: str, receiver: str, to: str, *, rate_bps: float, seconds: float) -> Offered:
    """Sends at a rate, in bits of frames on the port per second, for some time."""
    result, done = Offered(), threading.Event()
    with lab.inside(receiver):
        inlet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    inlet.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    inlet.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    inlet.bind((to, PORT))
    inlet.settimeout(0.2)
    reader = threading.Thread(target=_receive, args=(inlet, result, done))
    reader.start()
    try:
        with lab.inside(sender):
            outlet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with outlet:
            # A thread that waits for a processor sends afterwards all that is due by then: room for half a second.
            outlet.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 20)
            _send(outlet, to, result, rate_bps, seconds)
    finally:
        done.set()
        reader.join()
        inlet.close()
    return result


@contextmanager
def other_traffic(lab: Lab, sender: str, to: str) -> Iterator[None]:
    """A host sends all that its port takes to an address, as best effort, during the block."""
    over = threading.Event()
    with lab.inside(sender):
        outlet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # A fifth of a second in the port's queue, so that the port stays busy while this thread waits for a processor.
    outlet.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 20)

    def fill() -> None:
        content = bytes(PAYLOAD_BYTES)
        while not over.is_set():
            # Waits while the queue of the port holds as much as the socket may.
            outlet.sendto(content, (to, DISCARD_PORT))

    filler = threading.Thread(target=fill)
    filler.start()
    try:
        yield
    finally:
        over.set()
        filler.join()
        outlet.close()


def _send(outlet: socket.socket, to: str, result: Offered, rate_bps: float, seconds: float) -> None:
    interval_s = FRAME_BYTES * 8 / rate_bps
    began_s = time.monotonic()
    rest = bytes(PAYLOAD_BYTES - 4)
    outlet.setblocking(False)
    while (now_s := time.monotonic()) < began_s + seconds:
        due = int((now_s - began_s) / interval_s)
        while len(result.sent_at_s) < due:
            number = len(result.sent_at_s)
            result.sent_at_s.append(now_s)
            try:
                outlet.sendto(struct.pack("!I", number) + rest, (to, PORT))
            except BlockingIOError:
                # It was offered, and the queue is full.
                continue
        time.sleep(0.001)


def _receive(inlet: socket.socket, result: Offered, done: threading.Event) -> None:
    while not done.is_set():
        try:
            _, told, _, _ = inlet.recvmsg(PAYLOAD_BYTES, 64)
        except TimeoutError:
            continue
        tos = next((data[0] for level, kind, data in told if (level, kind) == (socket.IPPROTO_IP, socket.IP_TOS)), 0)
        result.arrived.append(Arrived(time.monotonic(), tos >> 2))


LESS_THAN_BEST_EFFORT = 1
"""RFC 8622."""
WINDOW_S = 0.25
PAYLOAD_BYTES = 1_400
FRAME_BYTES = PAYLOAD_BYTES + 8 + 20 + 14 + 50
"""With UDP, IP and Ethernet inside, and the headers of the tunnel."""
PORT, DISCARD_PORT = 5_001, 9
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
