"""`make bench-multicast`: the product beside UFTP and a TCP fan-out, one sender to seven sites in network namespaces.

Ours is encrypted, hashed, stored in the logs of hub and sites and written as files; the peers write files only.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench import report
from bench.delivery import HUB, Contender, Delivery
from bench.downburst_nodes import Downburst
from bench.multicast_rows import LOSSES, SITES, Runs, rows_of_fast, rows_of_losses, rows_of_narrow
from bench.tcp_fan_out import TcpFanOut
from bench.uftp_peer import Uftp
from kit.capabilities import reasons
from kit.namespaces import Lab

HOSTS = (HUB, *SITES)
Start = Callable[[Lab, Path], Contender]
"""Starts a contender in a lab, with a directory of its own."""


def main() -> int:
    """Measure, print the table, write the JSON; 0 when it measured, whatever it found."""
    options = _options()
    if missing := _missing():
        print(f"The measurement can't run here: {missing}", file=sys.stderr)
        return 2
    notes = [_OURS_DOES_MORE]
    with_uftp = _has_uftp(notes)
    described = report.machine()
    with _scratch() as directory:
        bench = Bench(directory, options.megabytes * 1_000_000, options.runs, with_uftp=with_uftp)
        rows = [*bench.losses(), *bench.narrow(), *bench.fast()]
    rows.sort(key=lambda row: int(row.id))
    described["load_1min_after"] = os.getloadavg()[0]
    result = report.document("multicast", described, rows, [*notes, *bench.notes])
    table = report.markdown(rows) if options.markdown else report.table(rows)
    print(table, *result["notes"], f"machine: {described}", sep="\n")
    if options.out:
        report.write(options.out, result)
    return 0


class Bench:
    """The cases; in each the contenders take turns, and every run starts its processes afresh."""

    def __init__(self, directory: Path, product_bytes: int, runs: int, *, with_uftp: bool) -> None:
        self._directory, self._product_bytes, self._runs = directory, product_bytes, runs
        self._with_uftp = with_uftp
        self.notes: list[str] = []

    def losses(self) -> list[report.Row]:
        """100 Mb/s asked: without loss, with loss at all sites, with loss at one."""
        contenders = self._contenders(ASKED_BPS, uftp_bps=ASKED_BPS)
        runs: dict[str, Runs] = {}
        with Lab(HOSTS) as lab:
            for case, percent_by_site in LOSSES.items():
                for site in SITES:
                    lab.loss(site, percent_by_site.get(site, 0.0), protocols=("udp", "tcp"))
                runs[case] = self._take_turns(f"100 Mb/s asked, {case}", lab, contenders)
        return rows_of_losses(runs)

    def narrow(self) -> list[report.Row]:
        """The sender's link is as narrow as a receiver's."""
        ours = self._contenders(BELOW_LINK_BPS)
        with Lab(HOSTS) as lab:
            for host in HOSTS:
                lab.rate(host, up_bps=LINK_BPS, down_bps=LINK_BPS)
            return rows_of_narrow(self._take_turns("links of 100 Mb/s", lab, {**ours, TcpFanOut.name: TcpFanOut}))

    def fast(self) -> list[report.Row]:
        """As fast as it goes, with the offloads on that a fast interface has."""
        contenders = self._contenders(FAST_BPS, uftp_bps=None)
        with Lab(HOSTS, segments=False) as lab:
            turns = {**contenders, TcpFanOut.name: TcpFanOut}
            return rows_of_fast(self._take_turns("as fast as it goes", lab, turns, times=FAST_TIMES))

    def _contenders(self, ours_bps: int, *, uftp_bps: int | None = 0) -> dict[str, Start]:
        """Ours at this rate, and uftp at its rate: None is without a limit, 0 leaves it out."""
        found: dict[str, Start] = {Downburst.name: lambda lab, directory: Downburst(lab, directory, ours_bps)}
        if self._with_uftp and uftp_bps != 0:
            found[Uftp.name] = lambda lab, directory: Uftp(lab, directory, uftp_bps)
        return found

    def _take_turns(self, case: str, lab: Lab, contenders: Mapping[str, Start], *, times: int = 1) -> Runs:
        runs: dict[str, list[Delivery]] = {name: [] for name in contenders}
        for _ in range(self._runs):
            for name, start in contenders.items():
                delivery = self._second_try(
                    f"{case}: {name}", partial(self._run, lab, start, times * self._product_bytes)
                )
                runs[name].append(delivery)
                if len(delivery.took_s) < len(SITES):
                    self.notes.append(f"{case}: {name} left {len(SITES) - len(delivery.took_s)} sites incomplete.")
                figures = f"{delivery.goodput_bps() / 1e6:.1f} Mb/s, {delivery.sent_share:.3f} of the bytes sent"
                print(f"  {case}: {name} {figures}", file=sys.stderr, flush=True)
        return runs

    def _second_try(self, what: str, run: Callable[[], Delivery]) -> Delivery:
        """Repeat a run that failed, once, and note it: a bad start is a finding and no reason to lose the rest."""
        try:
            return run()
        except (AssertionError, RuntimeError) as failure:
            self.notes.append(f"{what} failed and was repeated: {failure}")
            return run()

    def _run(self, lab: Lab, start: Start, product_bytes: int) -> Delivery:
        with tempfile.TemporaryDirectory(dir=self._directory) as directory:
            contender = start(lab, Path(directory))
            try:
                return contender.deliver(os.urandom(product_bytes))
            finally:
                contender.stop()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the result as JSON")
    parser.add_argument("--runs", type=int, default=3, help="runs of each contender per case (default 3)")
    parser.add_argument("--megabytes", type=int, default=24, help="10^6 bytes of products per run (default 24)")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    return parser.parse_args()


def _missing() -> str:
    found = reasons()
    needed = ("root", "netns", "veth", "bridge", "nft-numgen", "htb")
    return "; ".join(f"{name}: {found[name]}" for name in needed if found[name])


def _has_uftp(notes: list[str]) -> bool:
    """Install uftp where it is missing; a note says so where that can't be done."""
    if shutil.which("uftp") is None and shutil.which("apt-get"):
        argv = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "uftp"]
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(argv, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    if shutil.which("uftp"):
        return True
    notes.append("uftp is not installed and can't be (apt-get install uftp): its rows are left out.")
    return False


@contextmanager
def _scratch() -> Iterator[Path]:
    """A directory in memory where there is one, so that no disk is measured."""
    shared_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(
        prefix="downburst-bench-", dir=shared_memory if os.access(shared_memory, os.W_OK) else None
    ) as directory:
        yield Path(directory)


ASKED_BPS = 100_000_000
LINK_BPS = 100_000_000
BELOW_LINK_BPS = 97_000_000
FAST_BPS = 2_000_000_000
FAST_TIMES = 3
_OURS_DOES_MORE = (
    f"{Downburst.name} encrypts, hashes, stores in the logs of hub and sites and writes files; the peers write files."
)

if __name__ == "__main__":
    sys.exit(main())
