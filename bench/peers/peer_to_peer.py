"""Peers that serve each other, as fast as peers can be: the origin sends each site a part, which it gives to all.

`PeerToPeer` runs `python -m bench.peers.peer_to_peer site ADDRESS FILE BYTES PEER...` at the sites, and `... origin
FILE SITE...` at the hub: in clear, without digests, without a search for a part's owners.
"""

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from bench.harness.counters import link_bytes, moved
from bench.harness.delivery import HUB, Delivery, digest, file_stands_s, sites_of, source_file
from kit.namespaces import Lab


class PeerToPeer:
    """An origin, and sites that forward what they have from it while it arrives."""

    def __init__(self, lab: Lab, directory: Path) -> None:
        self._lab, self._directory = lab, directory
        directory.mkdir(parents=True, exist_ok=True)

    def deliver(self, product_bytes: int) -> Delivery:
        """Send a file in parts; the time runs from the first byte."""
        source = source_file(self._directory / "source", product_bytes)
        files = {site: self._directory / site for site in sites_of(self._lab)}
        addresses = {site: self._lab.address(site) for site in files}
        sites = []
        for site, path in files.items():
            others = [address for other, address in addresses.items() if other != site]
            sites.append(self._start(site, ["site", addresses[site], str(path), str(product_bytes), *others]))
        for process in sites:
            _ready(process)
        links = link_bytes(self._lab)
        origin = self._start(HUB, ["origin", str(source), *addresses.values()])
        began_s = float(json.loads(_ready(origin))["began_s"])
        for process in (origin, *sites):
            if process.wait(timeout=PATIENCE_S):
                raise RuntimeError(f"a peer ended with {process.returncode}")
            process.communicate()
        right = [site for site, path in files.items() if digest(path) == digest(source)]
        took_s = {site: file_stands_s(files[site]) - began_s for site in right}
        return Delivery(product_bytes, took_s, 0.0, moved(link_bytes(self._lab), links))

    def stop(self) -> None:
        """Nothing runs between deliveries."""

    def _start(self, host: str, arguments: list[str]) -> subprocess.Popen[str]:
        argv = [sys.executable, "-m", "bench.peers.peer_to_peer", *arguments]
        return self._lab.run(host, argv, stdout=subprocess.PIPE)


def part_of(size: int, number: int, parts: int) -> tuple[int, int]:
    """The begin and the end of a part."""
    return size * number // parts, size * (number + 1) // parts


def site(address: str, path: Path, size: int, others: Sequence[str]) -> None:
    """Take parts from any peer, and forward the own one, which comes from the origin."""
    path.write_bytes(b"")
    os.truncate(path, size)
    with socket.create_server((address, PORT), backlog=64) as server:
        print("ready", flush=True)
        threads = []
        for _ in range(len(others) + 1):
            connection, _ = server.accept()
            threads.append(threading.Thread(target=_take, args=(connection, path, others)))
            threads[-1].start()
        for thread in threads:
            thread.join()
    os.utime(path)


def origin(path: Path, sites: Sequence[str]) -> None:
    """Send each site its part."""
    connections = [socket.create_connection((address, PORT)) for address in sites]
    print(json.dumps({"began_s": time.time()}), flush=True)
    threads = []
    for number, connection in enumerate(connections):
        begin, end = part_of(path.stat().st_size, number, len(sites))
        threads.append(threading.Thread(target=_give, args=(connection, path, begin, end)))
        threads[-1].start()
    for thread in threads:
        thread.join()


def _take(connection: socket.socket, path: Path, others: Sequence[str]) -> None:
    """Write a part; one from the origin goes on to the others piece by piece."""
    with connection, path.open("r+b", buffering=0) as file:
        header = connection.recv(HEAD.size, socket.MSG_WAITALL)
        begin, end, origin_sent = HEAD.unpack(header)
        forward = [socket.create_connection((address, PORT)) for address in others] if origin_sent == FIRST else []
        for peer in forward:
            peer.sendall(HEAD.pack(begin, end, FORWARDED))
        file.seek(begin)
        left = end - begin
        while left and (piece := connection.recv(min(left, PIECE_BYTES))):
            file.write(piece)
            left -= len(piece)
            for peer in forward:
                peer.sendall(piece)
        for peer in forward:
            peer.close()


def _give(connection: socket.socket, path: Path, begin: int, end: int) -> None:
    with connection, path.open("rb", buffering=0) as file:
        connection.sendall(HEAD.pack(begin, end, FIRST))
        connection.sendfile(file, begin, end - begin)


def _ready(process: subprocess.Popen[str]) -> str:
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        raise RuntimeError(f"{process.args!r} ended before it was ready")
    return line


PORT = 7392
PIECE_BYTES = 1 << 16
PATIENCE_S = 120
HEAD = struct.Struct("!QQB")
FORWARDED, FIRST = 0, 1

if __name__ == "__main__":
    if sys.argv[1] == "site":
        site(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
    else:
        origin(Path(sys.argv[2]), sys.argv[3:])
