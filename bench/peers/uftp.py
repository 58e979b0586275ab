"""UFTP: `uftp` at the hub, `uftpd` at every site; multicast, repairs by multicast in later passes."""

import subprocess
from pathlib import Path

from bench.harness.counters import cpu_s, link_bytes, moved
from bench.harness.delivery import HUB, Delivery, digest, file_stands_s, source_file
from bench.peers.file_peer import first_data_s
from kit.namespaces import Lab
from kit.patience import wait_for


class Uftp:
    """In clear and without digests, which are its defaults; one file a run, the kindest to it."""

    def __init__(self, lab: Lab, directory: Path, rate_bps: int | None) -> None:
        self._lab, self._directory = lab, directory
        self._rate = "-1" if rate_bps is None else str(rate_bps // 1000)
        self._sites = {host: directory / host for host in lab.hosts if host != HUB}
        self._daemons = {host: self._start(host, received) for host, received in self._sites.items()}
        try:
            for host in self._sites:
                wait_for(f"uftpd at {host}", lambda host=host: self._listens(host))  # type: ignore[misc]
        except BaseException:
            self.stop()
            raise

    def deliver(self, product_bytes: int) -> Delivery:
        """Send one file; the time runs from the first data on the wire, without the registration."""
        source = source_file(self._directory / "products", product_bytes)
        expected = digest(source)
        links, spent_s = link_bytes(self._lab), cpu_s(self.pids())
        sender = self._send(source)
        began_s = first_data_s(sender, links[HUB].sent)
        spent_s = cpu_s([*self.pids(), sender.pid]) - spent_s
        if sender.wait() not in {0, 7, 8}:  # 7, 8: not every site has everything, which the files show better.
            raise RuntimeError(f"uftp ended with {sender.returncode}; see {self._log('sender')}")
        files = {host: received / source.name for host, received in self._sites.items()}
        took_s = {
            host: file_stands_s(path) - began_s
            for host, path in files.items()
            if path.exists() and digest(path) == expected
        }
        for path in (source, *files.values()):
            path.unlink(missing_ok=True)
        return Delivery(product_bytes, took_s, spent_s, moved(link_bytes(self._lab), links))

    def stop(self) -> None:
        """End the daemons."""
        for daemon in self._daemons.values():
            daemon.kill()
            daemon.wait()

    def pids(self) -> list[int]:
        """The daemons of the sites."""
        return [daemon.pid for daemon in self._daemons.values()]

    def _start(self, host: str, received: Path) -> subprocess.Popen[str]:
        received.mkdir(parents=True)
        argv = ["uftpd", "-d", "-q", "-I", "eth0", "-D", str(received), "-B", BUFFER_BYTES, "-M", GROUP]
        with self._log(host).open("w") as log:
            return self._lab.run(host, argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def _listens(self, host: str) -> bool:
        return group_is_joined(Path(f"/proc/{self._daemons[host].pid}/net/igmp").read_text(), GROUP)

    def _send(self, source: Path) -> subprocess.Popen[str]:
        groups = ("-M", GROUP, "-P", "230.77.0.x")
        argv = ["uftp", "-R", self._rate, "-I", "eth0", "-B", BUFFER_BYTES, "-b", "1400", "-r", INITIAL_ROUND_TRIP_S]
        with self._log("sender").open("a") as log:
            return self._lab.run(HUB, [*argv, *groups, str(source)], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def _log(self, host: str) -> Path:
        return self._directory / f"{host}.log"


def group_is_joined(igmp: str, group: str) -> bool:
    """Find a group in /proc/net/igmp, which writes addresses as little-endian hexadecimal."""
    parts = [int(part) for part in group.split(".")]
    wanted = "".join(f"{part:02X}" for part in reversed(parts))
    return any(line.split()[:1] == [wanted] for line in igmp.splitlines())


GROUP = "230.77.1.1"
BUFFER_BYTES = str(4 << 20)
INITIAL_ROUND_TRIP_S = (
    "0.2"  # 0.05 drops sites on a busy machine, the default of 0.5 only lengthens the registration.
)
