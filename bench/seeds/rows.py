"""Rows: a published figure, the model's figure, the measurements of this run, and the verdict on all of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bench.harness.report import Row
from bench.seeds.figures import FIGURES, Published, Value
from bench.seeds.measures import GROUPS
from bench.seeds.models import MODELS, agrees
from bench.seeds.page import counted


class Verdict(StrEnum):
    """The outcome of a row."""

    HOLDS = "holds"
    """Model and measurements are within their tolerances, as far as the row has them."""
    DIFFERS = "differs"
    NOT_MEASURED = "not measured"
    """A measurement exists, and this run has no result of it."""
    MISSING = "missing"
    """This machine lacks the device, the service or the data, and no model stands in."""


@dataclass(frozen=True)
class Studied:
    """One row."""

    published: Published
    model: Value | None
    within: float | None
    """The accepted relative difference of the model."""
    model_agrees: bool | None
    measured: tuple[Mapping[str, Any], ...] = ()
    """Rows of the harness as they are written to files."""

    @property
    def verdict(self) -> Verdict:
        """The worst of model and measurements."""
        found = [self.model_agrees, *(row["met"] for row in self.measured)]
        if False in found:
            return Verdict.DIFFERS
        if not self.measured and self.published.id in MEASURED:
            return Verdict.NOT_MEASURED
        return Verdict.HOLDS if True in found else Verdict.MISSING

    def as_json(self) -> dict[str, Any]:
        """The row as it is written to a file."""
        return {
            "id": self.published.id,
            "figure": self.published.figure,
            "published": self.published.published,
            "source": self.published.source,
            "unit": self.published.unit,
            "model": self.model,
            "within": self.within,
            "model_agrees": self.model_agrees,
            "measured": list(self.measured),
            "missing": self.published.missing,
            "verdict": str(self.verdict),
        }


def studied(ids: Iterable[str], measured: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Studied]:
    """The rows of these numbers with what was measured for them; the models are asked now."""
    return [_studied(BY_ID[name], tuple(measured.get(name, ()))) for name in ids]


def by_id(rows: Iterable[Row]) -> dict[str, list[dict[str, Any]]]:
    """Rows of the harness by number, as they are written to files."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row.id, []).append(row.as_json())
    return found


def of_document(document: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The measurements of an earlier run."""
    return {row["id"]: list(row["measured"]) for row in document["rows"] if row["measured"]}


def summary(rows: Sequence[Studied]) -> str:
    """The counts of a run in a sentence."""
    verdicts = [str(row.verdict) for row in rows]
    return f"{len(rows)} rows, {sum(bool(row.measured) for row in rows)} measured: {counted(verdicts)}"


def _studied(published: Published, measured: tuple[Mapping[str, Any], ...]) -> Studied:
    model = MODELS.get(published.id)
    if model is None:
        return Studied(published, None, None, None, measured)
    found = model.of()
    return Studied(published, found, model.within, agrees(published, found, model.within), measured)


BY_ID: Mapping[str, Published] = {one.id: one for one in FIGURES}
MEASURED = frozenset(name for group in GROUPS.values() for name in group.rows)
"""The numbers of rows with a measurement."""
