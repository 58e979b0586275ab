"""`make bench-spacing`: datagrams over loopback, 12 us apart, read by the site's thread for a multicast leg.

A feed with a deadline polls for up to 50 us before it blocks. Beside it the same receiver blocks always, or polls
always. The test `spacing` of the node sends and receives; sigma is that of the times between datagrams as the
receiver reads them, that of the source stands beside it.
"""

import argparse
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bench.harness import report


@dataclass(frozen=True)
class Run:
    """One receiver for some seconds."""

    manner: str
    lost: int
    cpu_share: float
    """Processor time over the time that passed."""
    sigma_us: float
    source_sigma_us: float

    @classmethod
    def of(cls, line: str) -> Self:
        """A line of the test."""
        said = json.loads(line.partition("spacing ")[2])
        lost = said["sent"] - said["received"]
        return cls(said["manner"], lost, said["cpu_share"], said["sigma_us"], said["source_sigma_us"])


def main() -> int:
    """Measure, print the table, write the JSON; 0 when it measured, whatever it found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each receiver")
    parser.add_argument("--debug", action="store_true", help="measure the program that is not optimised")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    described = report.machine()
    runs = [run for _ in range(options.runs) for run in measured(options.seconds, debug=options.debug)]
    found = rows(runs)
    result = report.document("spacing", described, found, [str(__doc__).partition("\n\n")[2].strip()])
    print(report.markdown(found) if options.markdown else report.table(found))
    print(*result["notes"], f"machine: {described}", sep="\n")
    if options.out:
        report.write(options.out, result)
    return 0


def measured(seconds: float, *, debug: bool) -> list[Run]:
    """One run of each receiver, in turns."""
    test = ["cargo", "test", "--locked", "-p", "downburst-node", "--lib", *(() if debug else ("--release",))]
    ended = subprocess.run(
        [*test, "spacing", "--", "--nocapture"],
        cwd=Path(__file__).parents[1] / "workers",
        env=os.environ | {"DOWNBURST_SPACING_SECONDS": str(seconds)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return [Run.of(line) for line in ended.stdout.splitlines() if "spacing {" in line]


def rows(runs: list[Run]) -> list[report.Row]:
    """From runs to rows: medians."""
    of = {manner: [run for run in runs if run.manner == manner] for manner in MANNERS}
    shares = {manner: report.median(run.cpu_share for run in some) for manner, some in of.items()}
    found = []
    for number, (manner, some) in enumerate(of.items(), 1):
        case = f"12 us apart, {manner}"
        lost = report.median(run.lost for run in some)
        sigma_us = report.median(run.sigma_us for run in some)
        source_us = report.median(run.source_sigma_us for run in some)
        is_goal = manner != "blocking"
        narrow = report.Goal("ours", "<=", 3 * TARGET_US)
        used, polling = shares[manner] * 100, shares["polling"] * 100
        found += [
            report.Row(f"{number}a", f"{case}: lost", "", lost, "-", None, len(some), NONE if is_goal else None),
            report.Row(f"{number}b", f"{case}: sigma", "us", sigma_us, "source", source_us, len(some), narrow),
            report.Row(f"{number}c", f"{case}: CPU", "%", used, "polling", polling, len(some), GOALS.get(manner)),
        ]
    return found


MANNERS = ("blocking", "adaptive", "polling")
TARGET_US = 12
NONE = report.Goal("ours", "<=", 0)
GOALS = {"blocking": report.Goal("ratio", "<=", 0.3)}

if __name__ == "__main__":
    raise SystemExit(main())
