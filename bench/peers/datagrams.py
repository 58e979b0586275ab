"""Even datagrams and a receiver with a small buffer: `python -m bench.peers.datagrams receive|send ADDRESS ...`.

The receiver counts; at a real-time priority (SCHED_RR) if one is given. What is missing overran its buffer.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time

from bench.harness.delivery import HUB
from kit.namespaces import Lab


def lost_percent(lab: Lab, site: str, *, priority: int, seconds: float) -> float:
    """The share of datagrams that the receiver's buffer lost."""
    count, address = round(seconds / SPACING_S), lab.address(site)
    argv = [PYTHON, "-m", "bench.peers.datagrams"]
    receiver = lab.run(site, [*argv, "receive", address, f"--priority={priority}"], stdout=subprocess.PIPE)
    try:
        assert receiver.stdout
        if receiver.stdout.readline().strip() != "ready":
            raise RuntimeError("the receiver of datagrams did not start")
        lab.output(HUB, [*argv, "send", address, f"--count={count}"], timeout_s=10 * seconds + 30)
        told, _ = receiver.communicate(timeout=30)
    finally:
        receiver.kill()
        receiver.wait()
    return 100 * (1 - int(json.loads(told)["received"]) / count)


def receive(address: str, priority: int) -> None:
    """Count until no more have come for a second."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as inlet:
        inlet.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES // 2)
        inlet.bind((address, PORT))
        inlet.settimeout(QUIET_S)
        if priority:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))
        print("ready", flush=True)
        received = 0
        buffer = bytearray(PAYLOAD_BYTES)
        try:
            while True:
                inlet.recv_into(buffer)
                received += 1
                inlet.settimeout(ENDED_S)
        except TimeoutError:
            print(json.dumps({"received": received}), flush=True)


def send(address: str, count: int) -> None:
    """One datagram each fifth of a millisecond, at a real-time priority; the sender must not be the limit."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outlet:
        began_s, content = time.monotonic(), bytes(PAYLOAD_BYTES)
        for number in range(count):
            wait_s = began_s + number * SPACING_S - time.monotonic()
            if wait_s > 0:
                time.sleep(wait_s)
            outlet.sendto(content, (address, PORT))


def main() -> None:
    """One end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=("receive", "send"))
    parser.add_argument("address")
    parser.add_argument("--priority", type=int, default=0)
    parser.add_argument("--count", type=int, default=0)
    wanted = parser.parse_args()
    if wanted.role == "receive":
        receive(wanted.address, wanted.priority)
    else:
        send(wanted.address, wanted.count)


PORT = 7391
PYTHON = sys.executable
PAYLOAD_BYTES, BUFFER_BYTES = 1_400, 64 << 10
SPACING_S = 0.0002
QUIET_S, ENDED_S = 30.0, 1.0

if __name__ == "__main__":
    main()
