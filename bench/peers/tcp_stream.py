"""Products in one TCP connection by schedule: `python -m bench.peers.tcp_stream receive|send ADDRESS [SCHEDULE]`.

A schedule is a JSON list of [microseconds after the beginning, bytes]; a product travels behind its length.
"""

import json
import socket
import struct
import sys
import time
from pathlib import Path


def argv(role: str, address: str, *schedule: str) -> list[str]:
    """Command line of one end."""
    return [sys.executable, "-m", "bench.peers.tcp_stream", role, address, *schedule]


def receive(address: str) -> None:
    """Take one connection, and print when each product was complete."""
    with socket.create_server((address, PORT)) as server:
        print("ready", flush=True)
        sys.stdin.readline()
        began_us = time.time() * 1e6
        connection, _ = server.accept()
    arrived_us: list[float] = []
    with connection:
        while head := connection.recv(HEAD.size, socket.MSG_WAITALL):
            _skip(connection, HEAD.unpack(head)[0])
            arrived_us.append(time.time() * 1e6)
    account = {"began_us": began_us, "ended_us": time.time() * 1e6, "messages": len(arrived_us)}
    print(json.dumps({**account, "arrived_us": arrived_us}), flush=True)


def send(address: str, schedule: Path) -> None:
    """Send each product when it is due, or as soon as those before it are written; print when this began."""
    products: list[tuple[int, int]] = json.loads(schedule.read_text())
    content = bytes(max(size for _, size in products))
    with socket.create_connection((address, PORT)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began_s = time.time()
        for at_us, size in products:
            time.sleep(max(0.0, began_s + at_us / 1e6 - time.time()))
            connection.sendall(HEAD.pack(size) + content[:size])
    print(json.dumps({"began_us": began_s * 1e6}))


def _skip(connection: socket.socket, left: int) -> None:
    buffer = memoryview(bytearray(1 << 18))
    while left > 0:
        read = connection.recv_into(buffer, min(left, len(buffer)))
        if not read:
            raise SystemExit("the connection ended within a product")
        left -= read


HEAD = struct.Struct("!Q")
PORT = 7391

if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive(sys.argv[2])
    else:
        send(sys.argv[2], Path(sys.argv[3]))
