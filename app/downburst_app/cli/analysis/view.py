"""Studies of a source by the kind of its data, each with its view: tables, one JSON document, or a page."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from downburst.foundation.errors import BadInput
from downburst.recordings.recording import Kind, ProductPiece, Recording, Transfer, recording
from downburst_analyze.counters import Counters, counters
from downburst_analyze.output.document import Source, product_document, report_document, transfer_document
from downburst_analyze.output.page import page
from downburst_analyze.output.pairs import pairs_document, print_pairs
from downburst_analyze.output.tables import print_products, print_reports, print_transfers
from downburst_analyze.output.transfers_page import transfers_page
from downburst_analyze.output.variance import print_variance
from downburst_analyze.pairs.learning import LearningRules, PairMinute, learn
from downburst_analyze.pairs.rows import pair_minutes
from downburst_analyze.sessions import SessionStudy
from downburst_analyze.study import study_products, study_reports
from downburst_analyze.transfers.conditions import Conditions, conditions_of
from downburst_analyze.transfers.exporting import exported, key_of
from downburst_analyze.variance import VarianceStudy
from downburst_app.cli.analysis.terminal import Step, console_of_output, progress
from downburst_scheduler.models.candidates import Situation

Shown = Callable[[], None]
"""Shows a result; called after the progress line is removed."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """The export of transfers, without names."""

    export: Path | None
    key_file: Path | None


@dataclass(frozen=True, slots=True)
class Options:
    """Options besides the situation."""

    gap_s: float
    counters: Path | None
    html: Path | None
    sharing: Sharing
    heavy_bytes: int | None
    """With it the data are studied as minutes of pairs."""
    sort: bool
    as_json: bool


class View:
    """Studies data from one source and returns the view of the result."""

    def __init__(self, name: str, source: Source, situation: Situation, options: Options) -> None:
        self._name = name
        self._source = source
        self._situation = situation
        self._options = options

    def products(self, pieces: Iterable[ProductPiece], step: Step) -> Shown:
        """Products in order of time."""
        self._refuse_what_has_no_use(Kind.PRODUCTS)
        studied = study_products(pieces, self._situation, name=self._name, gap_s=self._options.gap_s, step=step)
        if self._options.html is not None:
            step("drawing")
            with _written(self._options.html, "--html") as write:
                write(page(self._name, studied, self._situation))
        document = product_document(self._source, studied, self._situation)
        return self._shown(document, lambda: print_products(console_of_output(), studied, self._situation))

    def transfers(
        self, found: Iterable[Transfer], conditions: Conditions, beside: Mapping[str, Counters] | None = None
    ) -> Shown:
        """Transfers, with conditions of each in the same order, and counters of hosts beside those of the options."""
        self._refuse_what_has_no_use(Kind.TRANSFERS)
        seen, varying = SessionStudy(gap_s=self._options.gap_s), VarianceStudy()
        given = counters(self._options.counters) if self._options.counters else {}
        samples = {**(beside or {}), **given}
        transfers = varying.passing(self._exporting(found, conditions))
        seen.take(sorted(transfers, key=lambda one: one.start_us) if self._options.sort else transfers)
        figures = seen.figures(sorted({self._situation.circuits.setup_s, 60.0, 1.0, 0.05}, reverse=True))
        if figures.transfers == 0:
            raise BadInput(f"{self._name}, line 1: the log has no transfers; give one with at least one", line=1)
        depends = varying.figures(samples, conditions)
        if self._options.html is not None:
            with _written(self._options.html, "--html") as write:
                write(transfers_page(self._name, figures, depends))

        def tables() -> None:
            print_transfers(console_of_output(), figures)
            if depends is not None:
                print_variance(console_of_output(), depends)

        return self._shown(transfer_document(self._source, figures, depends), tables)

    def reports(self, found: Recording) -> Shown:
        """Lines of rtstats."""
        self._refuse_what_has_no_use(Kind.REPORTS)
        reported = study_reports(found.reports())
        return self._shown(
            report_document(self._source, reported), lambda: print_reports(console_of_output(), reported)
        )

    def pairs(self, minutes: Iterable[PairMinute], heavy_bytes: int) -> Shown:
        """Bytes of pairs of feed and site by the minute."""
        for option, value in (("--html", self._options.html), *self._of_transfers()):
            if value is not None:
                raise BadInput(f"--heavy learns pairs, and {option} has no use with it; leave one of them out")
        if self._options.sort:
            minutes = sorted(minutes, key=lambda one: one.minute)
        study = learn(minutes, LearningRules(heavy_bytes=heavy_bytes))
        return self._shown(pairs_document(self._source, study), lambda: print_pairs(console_of_output(), study))

    def _exporting(self, found: Iterable[Transfer], conditions: Conditions) -> Iterator[Transfer]:
        """Passes transfers on, and writes each to the export on its way."""
        if self._options.sharing.export is None:
            yield from found
            return
        passed: list[Transfer] = []

        def passing() -> Iterator[Transfer]:
            for one in found:
                passed.append(one)
                yield one

        with _written(self._options.sharing.export, "--export") as write:
            for line in exported(passing(), conditions, key_of(self._options.sharing.key_file)):
                write(line)
                yield from passed
                passed.clear()

    def _refuse_what_has_no_use(self, kind: Kind) -> None:
        if self._options.html is not None and kind is Kind.REPORTS:
            raise BadInput(f"{self._name} holds {kind}, which have no page; leave --html out, or use --json")
        for option, value in self._of_transfers():
            if value is not None and kind is not Kind.TRANSFERS:
                raise BadInput(f"{self._name} holds {kind} and {option} belongs to transfers; leave it out")

    def _of_transfers(self) -> tuple[tuple[str, Path | None], ...]:
        return ("--counters", self._options.counters), ("--export", self._options.sharing.export)

    def _shown(self, document: dict[str, Any], tables: Shown) -> Shown:
        return (lambda: typer.echo(json.dumps(document, indent=1))) if self._options.as_json else tables


def show_file(file: Path, columns: str | None, situation: Situation, options: Options) -> None:
    """Studies a file with a progress line, then shows the result."""
    view = View(file.name, {"file": str(file)}, situation, options)
    if options.heavy_bytes is not None:
        view.pairs(pair_minutes(file), options.heavy_bytes)()
        return
    with progress() as (share, step), recording(file, columns=columns, progress=share) as found:
        if found.kind is Kind.TRANSFERS:
            shown = view.transfers(found.transfers(), conditions_of(file))
        elif found.kind is Kind.REPORTS:
            shown = view.reports(found)
        else:
            shown = view.products(found.products(sort=options.sort), step)
    shown()


@contextmanager
def _written(path: Path, option: str) -> Iterator[Callable[[str], int]]:
    """The writer of a new text file."""
    try:
        with path.open("w", encoding="utf-8") as file:
            yield file.write
    except OSError as error:
        raise BadInput(f"{path} can't be written ({error.strerror}); name another file with {option}") from error
