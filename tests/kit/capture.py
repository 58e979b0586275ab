"""Frames of tunnels as a host's interface sees them, from a packet socket."""

import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from kit.namespaces import Lab


@dataclass(frozen=True)
class Seen:
    """A frame of a VXLAN tunnel."""

    source: str
    to: str
    vni: int
    dscp: int
    """Of the outer header."""
    inside: bytes
    """The frame in the tunnel."""


class Capture:
    """All frames on an interface during the block, sent and received."""

    def __init__(self, lab: Lab, host: str, interface: str = "eth0") -> None:
        with lab.inside(host):
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self._interface = interface

    def __enter__(self) -> Self:
        self._socket.bind((self._interface, 0))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def tunnels(self, seconds: float = 0.2) -> list[Seen]:
        """The frames of tunnels so far, and those of some further time."""
        return [seen for frame in self._frames(seconds) if (seen := tunnel_frame(frame))]

    def _frames(self, seconds: float) -> Iterator[bytes]:
        with suppress(BlockingIOError):
            while True:
                yield self._socket.recv(65_536, socket.MSG_DONTWAIT)
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0:
            if select.select([self._socket], [], [], left_s)[0]:
                yield self._socket.recv(65_536)


def tunnel_frame(frame: bytes) -> Seen | None:
    """Reads Ethernet, IPv4 without options, UDP to port 4789 and VXLAN; None: the frame is another one."""
    if len(frame) < 50 or frame[12:15] != b"\x08\x00\x45" or frame[23] != socket.IPPROTO_UDP:
        return None
    if struct.unpack_from("!H", frame, 36)[0] != VXLAN_PORT:
        return None
    source, to = (socket.inet_ntoa(frame[at : at + 4]) for at in (26, 30))
    return Seen(source, to, int.from_bytes(frame[46:49]), frame[15] >> 2, frame[50:])


ETH_P_ALL = 3
SO_RCVBUFFORCE = 33
VXLAN_PORT = 4789
