"""The distribution of latencies: a histogram over decades, from the sketches in the ledger."""

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query

from downburst.domain.latency import LatencyKind
from downburst.domain.plans import Transport
from downburst.foundation.moments import moment
from downburst.ledger import Transaction
from downburst.ledger.repositories.latency.selection import Selection
from downburst.sketches.sheet import Merged, Sheet, bucket_of_code
from downburst.sketches.sketch import value_of
from downburst_api.border.site_rights import check_feed_shown
from downburst_api.http.parameters import Asking, Hub
from downburst_api.latency.routes import Minutes
from downburst_api.latency.service import figures, figures_of, minute_of, objective_of
from downburst_contract.latency import Bin, Figures, Histogram

router = APIRouter(prefix="/v1", tags=["latency"])


@router.get("/latency/histogram")
async def latency_histogram(  # noqa: PLR0913
    hub: Hub,
    caller: Asking,
    *,
    feed: str,
    site: str | None = None,
    transport: Transport | None = None,
    kind: LatencyKind = LatencyKind.DISTRIBUTION,
    minutes: Minutes = 360,
    until: Annotated[str | None, Query(description="The end: RFC 3339, or how long ago; now if left out.")] = None,
) -> Histogram:
    """Latency distribution: product counts in ten steps per decade, with the figures of all products."""
    now = hub.clock.now()
    end = minute_of(now if until is None else moment(until, now)) + 1

    wanted = Selection(end - minutes, end, feed, site, transport, kind)

    def work(tx: Transaction) -> tuple[Sheet, float | None]:
        check_feed_shown(tx, caller, feed)
        return tx.measured.latency.sheet(wanted), objective_of(tx, wanted)

    sheet, objective_ms = await hub.ledger.read(work)
    whole = Merged.of(sheet, np.zeros(len(sheet), np.int64), 1)
    found = figures_of(whole)[0] if len(sheet) else figures([])
    held = buckets(sheet)
    return Histogram(
        bins=bins(held),
        figures=Figures(**found),
        objective_ms=objective_ms,
        over_objective=None if objective_ms is None else over(held, objective_ms),
    )


def buckets(sheet: Sheet) -> dict[str, int]:
    """The number of values in each bucket, over all sketches."""
    codes, place = np.unique(sheet.codes, return_inverse=True)
    counts = np.bincount(place, sheet.held, len(codes)).astype(np.int64)
    return {bucket_of_code(code): count for code, count in zip(codes.tolist(), counts.tolist(), strict=True)}


def over(buckets: Mapping[str, int], objective_ms: float) -> int:
    """How many values are above an objective."""
    return sum(count for bucket, count in buckets.items() if value_of(bucket) > objective_ms)


def bins(buckets: Mapping[str, int]) -> list[Bin]:
    """The counts between round bounds; values at or below zero have no place on a log axis and are left out."""
    steps: defaultdict[int, int] = defaultdict(int)
    for bucket, count in buckets.items():
        value_ms = value_of(bucket)
        if value_ms > 0:
            steps[math.ceil(math.log10(value_ms) * STEPS_A_DECADE)] += count
    return [
        Bin(from_ms=_bound_ms(step - 1), to_ms=_bound_ms(step), count=count) for step, count in sorted(steps.items())
    ]


def _bound_ms(step: int) -> float:
    return float(f"{10 ** (step / STEPS_A_DECADE):.3g}")


STEPS_A_DECADE = 10
"""Wider than the sketch's own buckets, which have no round bounds."""
