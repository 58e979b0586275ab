"""Today's way: one TCP connection per site, the same file on each by sendfile, in clear and without digests.

`TcpFanOut` runs `python -m bench.peers.tcp_fan_out receive ADDRESS PATH` and `... send PATH ADDRESS...`.
"""

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from bench.harness.counters import cpu_s, link_bytes, moved
from bench.harness.delivery import HUB, Delivery, digest, file_stands_s, source_file
from kit.namespaces import Lab


class TcpFanOut:
    """A sender with a thread per site; a receiver per site that writes a file."""

    def __init__(self, lab: Lab, directory: Path) -> None:
        self._lab, self._directory = lab, directory
        self._sites = {host: directory / host for host in lab.hosts if host != HUB}
        directory.mkdir(parents=True, exist_ok=True)

    def deliver(self, product_bytes: int) -> Delivery:
        """Send a file over a connection per site; the time runs from the first byte."""
        source = source_file(self._directory / "source", product_bytes)
        receivers = [
            self._start(host, ["receive", self._lab.address(host), str(path)]) for host, path in self._sites.items()
        ]
        for receiver in receivers:
            _line(receiver)
        links, spent_s = link_bytes(self._lab), cpu_s(process.pid for process in receivers)
        sender = self._start(HUB, ["send", str(source), *map(self._lab.address, self._sites)])
        _line(sender)
        start_s = cpu_s([sender.pid])
        assert sender.stdin
        began_s = time.time()
        sender.stdin.write("go\n")
        sender.stdin.flush()
        processes = [sender, *receivers]
        for process in processes:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        spent_s = cpu_s(process.pid for process in processes) - spent_s - start_s
        for process in processes:
            process.communicate()
        right = [host for host, path in self._sites.items() if digest(path) == digest(source)]
        took_s = {host: file_stands_s(self._sites[host]) - began_s for host in right}
        return Delivery(product_bytes, took_s, spent_s, moved(link_bytes(self._lab), links))

    def stop(self) -> None:
        """Nothing runs between deliveries."""

    def _start(self, host: str, arguments: list[str]) -> subprocess.Popen[str]:
        argv = [sys.executable, "-m", "bench.peers.tcp_fan_out", *arguments]
        return self._lab.run(host, argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def receive(address: str, path: Path) -> None:
    """Write the bytes of one connection to a file."""
    with socket.create_server((address, PORT)) as server:
        print("listening", flush=True)
        connection, _ = server.accept()
    buffer = memoryview(bytearray(1 << 18))
    with connection, path.open("wb", buffering=0) as file:
        while count := connection.recv_into(buffer):
            file.write(buffer[:count])


def send(path: Path, addresses: list[str]) -> None:
    """Send the file to all addresses at once, after a line on stdin."""
    connections = [socket.create_connection((address, PORT)) for address in addresses]
    threads = [threading.Thread(target=_send_file, args=(path, connection)) for connection in connections]
    print("connected", flush=True)
    sys.stdin.readline()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _send_file(path: Path, connection: socket.socket) -> None:
    with connection, path.open("rb", buffering=0) as file:
        connection.sendfile(file)


def _line(process: subprocess.Popen[str]) -> None:
    assert process.stdout
    if not process.stdout.readline():
        raise RuntimeError(f"{process.args!r} ended before it was ready")


PORT = 7390

if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive(sys.argv[2], Path(sys.argv[3]))
    else:
        send(Path(sys.argv[2]), sys.argv[3:])
