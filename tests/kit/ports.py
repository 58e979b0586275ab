"""Ports of the loopback interface for servers of tests, from the time a test picks one until its server listens.

A port that the kernel picks is in the range of outgoing connections, and one of those may take it before the server
listens. Ports below that range are taken by servers alone, and each process of the tests has a block of its own.
"""

import itertools
import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path


def free_port() -> int:
    """A port on which nothing listens, by TCP or UDP; later calls return others."""
    for port in itertools.islice(_block(), PORTS_OF_BLOCK):
        if _is_free(port):
            return port
    raise AssertionError(f"all {PORTS_OF_BLOCK} ports of this process's block are in use")


def free_ports(number: int) -> list[int]:
    """Different ports on which nothing listens."""
    return [free_port() for _ in range(number)]


def ports_in_a_row(number: int) -> list[int]:
    """Consecutive ports on which nothing listens."""
    ports = free_ports(number)
    while ports[-1] - ports[0] != number - 1:
        ports = [*ports[1:], free_port()]
    return ports


@cache
def _block() -> Iterator[int]:
    """The ports of this process. The name of an abstract socket reserves them until the process ends."""
    for first in range(FIRST_PORT, _outgoing_from() - PORTS_OF_BLOCK + 1, PORTS_OF_BLOCK):
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0downburst-test-ports-{first}")
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        return itertools.cycle(range(first, first + PORTS_OF_BLOCK))
    raise AssertionError("too many processes of tests: no block of ports is left")


def _outgoing_from() -> int:
    """The first port that the kernel gives to outgoing connections."""
    return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


def _is_free(port: int) -> bool:
    try:
        with socket.create_server(("127.0.0.1", port)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            datagrams.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


_claims: list[socket.socket] = []
FIRST_PORT, PORTS_OF_BLOCK = 10_000, 500
