"""`make bench-seeds`: the published figures of five studies beside the product's models, and measured again.

    make bench-seeds OUT=seeds.json ARGS="--quick"
    make bench-seeds ARGS="--only R1,W16 --with downburst_scheduler.models.rates.RELAYED_SHARE=0.5"

Rows that need root, or a kernel's ability that is missing, are left out with the reason. With `--out` the file is
written after each group; `--resume` measures the rows that it lacks, or those of `--only` again. A run of all rows
writes docs/studies.md; `--models --resume --out seeds.json --docs docs/studies.md` writes it from the file.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from bench.harness import report
from bench.harness.command import chosen
from bench.harness.scratch import scratch, tell
from bench.harness.turns import FAILURES
from bench.seeds.measures import GROUPS, Group, Wanted
from bench.seeds.page import page
from bench.seeds.rows import BY_ID, Studied, by_id, of_document, studied, summary
from kit.capabilities import reasons

Measured = dict[str, list[dict[str, Any]]]


def main() -> int:
    """Measure, print the table, write the files; 0 when it measured, whatever it found."""
    options = _options()
    try:
        for name, value in options.changed:
            change(name, value)
    except (ImportError, AttributeError, TypeError, ValueError) as failure:
        print(f"--with can't change {name}: {failure}", file=sys.stderr)
        return 2
    run = Run(options, Wanted(options.runs or (1 if options.quick else 3), options.quick))
    if not options.models:
        run.measure()
    rows = studied(run.ids, run.measured)
    print(table(rows), *run.wanted.notes, summary(rows), sep="\n")
    run.write()
    return 0 if run.measured or options.models else 1


class Run:
    """A run and its results so far."""

    def __init__(self, options: argparse.Namespace, wanted: Wanted) -> None:
        self.measured: Measured = {}
        self.ids: list[str] = options.only or list(BY_ID)
        self.to_measure = self.ids
        self.wanted, self._options = wanted, options
        self._described = self._described_now()
        if options.resume and options.out and options.out.exists():
            self._resume(json.loads(options.out.read_text()))

    def measure(self) -> None:
        """All groups that the wanted rows need, one after the other."""
        groups = needed(self.to_measure)
        for number, (name, group) in enumerate(groups.items(), 1):
            tell(f"{number} of {len(groups)}: {name}, rows {', '.join(group.rows)}")
            found = by_id(measure(name, group, self.wanted))
            self.measured |= {row: rows for row, rows in found.items() if row in self.to_measure}
            if self._options.out:
                report.write(self._options.out, self.document())

    def write(self) -> None:
        """Write the files; the page of all rows is in docs, unless a constant was changed for the run."""
        is_whole = len(self.ids) == len(BY_ID) and not (self._options.changed or self._options.models)
        docs = self._options.docs or (STUDIES if is_whole else None)
        if self._options.out:
            report.write(self._options.out, self.document())
        if docs:
            docs.write_text(page(self.document()))

    def _resume(self, earlier: Mapping[str, Any]) -> None:
        """Keep the results of an earlier run; rows that are named are measured anew, or else those without result."""
        if self._options.models:
            self._described = {name: earlier[name] for name in self._described}
        self.measured = of_document(earlier)
        known = {row["id"] for row in earlier["rows"]}
        self.to_measure = self._options.only or [name for name in BY_ID if name not in self.measured]
        again = () if self._options.models else tuple(needed(self.to_measure))
        self.wanted.notes.extend(note for note in earlier["notes"] if not any(f" {name}:" in note for name in again))
        self.ids = [name for name in BY_ID if name in self.ids or name in known]

    def document(self) -> dict[str, Any]:
        """The result as it is written to a file."""
        machine = self._described["machine"]
        if not self._options.models:
            machine = machine | {"load_1min_after": os.getloadavg()[0]}
        rows = [row.as_json() for row in studied(self.ids, self.measured)]
        return {"bench": "seeds", **self._described, "machine": machine, "rows": rows, "notes": self.wanted.notes}

    def _described_now(self) -> dict[str, Any]:
        runs = f"{self.wanted.runs} run{'s' if self.wanted.runs > 1 else ''} of each"
        programs = "not optimised" if os.environ.get("DOWNBURST_PROFILE") == "debug" else "optimised"
        return {
            "date": datetime.now(UTC).date().isoformat(),
            "extent": f"{runs}, {'quick' if self.wanted.quick else 'full'}, programs {programs}",
            "machine": report.machine() | {"load_1min_after": os.getloadavg()[0]},
        }


def needed(rows: Iterable[str]) -> dict[str, Group]:
    """The groups with one of these rows."""
    wanted = set(rows)
    return {name: group for name, group in GROUPS.items() if wanted & set(group.rows)}


def measure(name: str, group: Group, wanted: Wanted) -> list[report.Row]:
    """The rows of a group; one that fails twice, or can't be measured here, is noted."""
    able = reasons() if group.needs else {}
    if missing := [f"{need}: {able[need]}" for need in group.needs if able[need]]:
        wanted.notes.append(f"NOT MEASURED, {name}: {'; '.join(missing)}")
        return []
    for repeated in (False, True):
        try:
            with scratch(BYTES) as directory:
                rows = group.measure(directory, wanted)
        except (*FAILURES, pytest.skip.Exception) as failure:
            what = "NOT MEASURED," if repeated else "failed and was repeated:"
            wanted.notes.append(f"{what} {name}: {' '.join(str(failure).split()) or type(failure).__name__}"[:400])
            tell(wanted.notes[-1])
        else:
            for row in rows:
                tell(f"{row.id}: {row.case}: {report.figure(row.ours)} {row.unit}, {row.against} {row.theirs}")
            return rows
    return []


def change(name: str, value: float) -> None:
    """Set a number of a model for this run: the dotted name of its module, and its own."""
    module, _, constant = name.rpartition(".")
    known = getattr(import_module(module), constant)
    if not isinstance(known, int | float):
        raise TypeError(f"{constant} is no number")
    setattr(import_module(module), constant, type(known)(value))


def table(rows: Sequence[Studied]) -> str:
    """The rows as text: figure, model, measurements, verdict."""
    lines = []
    for row in rows:
        model = (
            "-" if row.model is None else f"{row.model if isinstance(row.model, str) else report.figure(row.model)}"
        )
        lines.append(
            f"{row.published.id:4} {row.verdict:12} {row.published.figure}: {row.published.published}; model {model}"
        )
        lines += [
            f"       {report.figure(one['ours'])} {one['unit']}, {one['against']} {report.figure(one['theirs'])}, "
            f"{one['goal'] or 'no goal'}, met: {one['met']}; {one['case']}"
            for one in row.measured
        ]
        if row.published.missing:
            lines.append(f"       missing: {row.published.missing}")
    return "\n".join(lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make bench-seeds", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=_rows, help="these rows, as in D3,W16 (default: all)")
    parser.add_argument("--runs", type=int, help="runs of each measurement, of which the median counts (default 3)")
    parser.add_argument("--quick", action="store_true", help="one short run of each: less than 25 minutes")
    parser.add_argument("--models", action="store_true", help="ask the models alone, without measurements")
    parser.add_argument("--out", type=Path, help="write the result as JSON, after each group")
    parser.add_argument("--resume", action="store_true", help="keep the results in --out, but for those of --only")
    parser.add_argument("--docs", type=Path, help="write the page of the run here (all rows: docs/studies.md)")
    parser.add_argument(
        "--with",
        dest="changed",
        type=_changed,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="change a constant of a model for this run",
    )
    options = parser.parse_args()
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
    return options


def _rows(text: str) -> list[str]:
    wanted = chosen(text, BY_ID)
    return [name for name in BY_ID if name in wanted]


def _changed(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    return name, float(value)


STUDIES = Path(__file__).parents[2] / "docs" / "studies.md"
BYTES = 4_000_000_000
"""Room for the logs of a hub and 24 sites."""

if __name__ == "__main__":
    sys.exit(main())
