"""`make bench-ldm`: 2 kB products from a hub to eight LDM downstreams on the loopback interface.

The downstreams count and keep nothing. LDM itself was measured with LDM 6.14.5 on two cores, its downstreams with
queues of their own: 1,800 to 2,220 products per second to each of eight, 37 us of processor time per delivery
upstream, and in 19 % of the runs a last product that came 30 s late.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness import report
from bench.harness.scratch import scratch, tell, warm_memory
from kit.node import HubNode
from kit.programs import built


def main() -> int:
    """Measure, print the table, write the JSON; 0 when it measured, whatever it found."""
    options = _options()
    described = report.machine()
    with scratch(NEEDED_BYTES) as directory:
        warm_memory(directory, 1 << 30)
        full = [_catch_up(directory / f"full-{turn}", options.products) for turn in range(options.runs)]
        live = [_live(directory / f"live-{turn}", options.products // 4) for turn in range(options.runs)]
    result = report.document("ldm", described, rows(full, live), [str(__doc__).partition("\n\n")[2].strip()])
    print(report.markdown(rows(full, live)) if options.markdown else report.table(rows(full, live)))
    print(*result["notes"], f"machine: {described}", sep="\n")
    if options.out:
        report.write(options.out, result)
    return 0


@dataclass(frozen=True)
class Run:
    """The result of one run."""

    per_s: float
    """To each downstream, until the last of them had everything."""
    hub_us: float
    """Processor time of the hub per delivery."""
    gap_ms: float
    """The longest that a downstream was left waiting for its next product."""
    doubled: int


def rows(full: list[Run], live: list[Run]) -> list[report.Row]:
    """From runs to rows."""
    found = []
    for number, name, runs in (("1", "from a full log", full), ("2", "live burst", live)):
        case = f"2 kB to {DOWNSTREAMS} LDM downstreams, {name}"
        per_s = report.median(run.per_s for run in runs)
        hub_us = report.median(run.hub_us for run in runs)
        gap_ms = max(run.gap_ms for run in runs)
        found += [
            report.Row(number, case, "products/s", per_s, LDM, 1_800, len(runs), report.Goal("ratio", ">=", 5)),
            report.Row(number, f"{case}: hub's processor", "us", hub_us, LDM, 37, len(runs)),
            report.Row(number, f"{case}: longest silence", "ms", gap_ms, LDM, 30_000, len(runs), TAIL),
            report.Row(number, f"{case}: doubled", "", sum(run.doubled for run in runs), "-", None, len(runs)),
        ]
    return found


def _catch_up(directory: Path, products: int) -> Run:
    """The downstreams request products from a hub whose log is full."""
    log = directory / "data" / "log" / FEED
    fill = [str(built("downburst-load")), "fill", "--log", str(log), "--feed", FEED, "--signed"]
    subprocess.run([*fill, "--products", str(products), "--bytes", "2000"], check=True, stdout=subprocess.DEVNULL)
    with _hub(directory) as (hub, address), _downstreams(address, products) as downstreams:
        before_s = _cpu_s(hub)
        received = _received(downstreams)
        return _run(received, products, _cpu_s(hub) - before_s, min(one["first_us"] for one in received))


def _live(directory: Path, products: int) -> Run:
    """Products go into the hub as fast as it takes them while the downstreams wait."""
    with _hub(directory) as (hub, address), _downstreams(address, products) as downstreams:
        spooled = [hub.directory / "spool" / str(number) for number in range(products)]
        for number, path in enumerate(spooled):
            path.write_bytes(number.to_bytes(8, "big") * 250)
        before_s = _cpu_s(hub)
        jobs = [hub.begin("ingest", path=str(path), feed=FEED, product_id=path.name, remove=True) for path in spooled]
        received = _received(downstreams)
        tell(f"{len(jobs)} products went in")
        return _run(received, products, _cpu_s(hub) - before_s, min(one["first_us"] for one in received))


def _run(received: list[dict[str, Any]], products: int, hub_s: float, began_us: int) -> Run:
    took_s = (max(one["last_us"] for one in received) - began_us) / 1e6
    assert all(one["products"] == products for one in received)
    return Run(
        per_s=products / took_s,
        hub_us=hub_s * 1e6 / (products * DOWNSTREAMS),
        gap_ms=max(one["longest_gap_us"] for one in received) / 1e3,
        doubled=sum(one["doubled"] for one in received),
    )


@contextmanager
def _hub(directory: Path) -> Iterator[tuple[HubNode, str]]:
    hub = HubNode(directory).start()
    try:
        hub.feed(FEED, duplicate_rule="signature", ldm_feed_type="NGRID", retention_bytes=64_000_000_000)
        hub.ldm_hosts["sink"] = ".*"
        hub.sites["sink"] = [{"feed": FEED, "pattern": ".*", "not_pattern": None}]
        hub.tell_sites()
        yield hub, hub.do("ldm", listen=["127.0.0.1:0"])["addresses"][0]
    finally:
        hub.stop()


@contextmanager
def _downstreams(address: str, products: int) -> Iterator["subprocess.Popen[str]"]:
    argv = [str(built("downburst-load")), "ldm-receive", "--from", address, "--feed", "NGRID"]
    argv += ["--connections", str(DOWNSTREAMS), "--products", str(products)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as downstreams:
        assert downstreams.stdout is not None
        assert downstreams.stdout.readline() == "ready\n"
        yield downstreams


def _received(downstreams: "subprocess.Popen[str]") -> list[dict[str, Any]]:
    out, _ = downstreams.communicate(timeout=600)
    found: list[dict[str, Any]] = json.loads(out)
    return found


def _cpu_s(hub: HubNode) -> float:
    """User and system time of the hub's process so far."""
    fields = Path(f"/proc/{hub.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--products", type=int, default=200_000)
    parser.add_argument("--markdown", action="store_true")
    return parser.parse_args()


FEED = "NGRID"
DOWNSTREAMS = 8
LDM = "LDM 6.14.5 (see notes)"
NEEDED_BYTES = 4_000_000_000
TAIL = report.Goal("ours", "<=", 1_000)

if __name__ == "__main__":
    sys.exit(main())
