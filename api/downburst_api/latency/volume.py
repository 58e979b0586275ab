"""Public figures beside latency: the volume of feeds, and the distribution tree."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from downburst.domain.feeds import TrafficMinute
from downburst.foundation.clock import from_us
from downburst.foundation.moments import moment
from downburst.ledger import Transaction
from downburst_api.border.site_rights import check_feed_shown
from downburst_api.http.parameters import Asking, Hub
from downburst_api.http.spreadsheet import Asked, Form, csv_answer
from downburst_api.latency.arrivals import arrivals, volumes
from downburst_api.latency.service import minute_of, range_out
from downburst_api.latency.tree import tree_of
from downburst_contract import latency as shapes

router = APIRouter(prefix="/v1", tags=["latency"])
Minutes = Annotated[int, Query(ge=1, le=525_600, description="Length of the period.")]


@router.get("/volume", response_model=shapes.Volume)
async def volume(hub: Hub, *, minutes: Minutes = 1_440, form: Asked) -> shapes.Volume | Response:
    """Volume of each feed: mean and greatest hour, share of all, products an hour; the largest feed first."""
    end = minute_of(hub.clock.now()) + 1
    asked_since = end - minutes

    def work(tx: Transaction) -> tuple[list[TrafficMinute], int | None]:
        return tx.measured.traffic.spans(since_minute=asked_since), tx.measured.traffic.first_minute(since_minute=0)

    found, first = await hub.ledger.read(work)
    # The time before the hub existed does not count as silence.
    since = end if first is None else min(max(asked_since, first), end)
    rows = volumes(found, begin=since, end=end)
    if form is Form.CSV:
        return csv_answer("volume", rows, VOLUMES)
    return shapes.Volume(
        minutes=minutes,
        since=from_us(since * 60_000_000),
        hours_seen=(end - since) / 60,
        bytes=sum(row["bytes"] for row in rows),
        feeds=[shapes.FeedVolume(**row) for row in rows],
    )


@router.get("/volume/history", response_model=shapes.VolumeHistory)
async def volume_history(
    hub: Hub,
    caller: Asking,
    *,
    feed: str,
    minutes: Minutes = 1_440,
    until: Annotated[str | None, Query(description="The end: RFC 3339, or how long ago; now if left out.")] = None,
    form: Asked,
) -> shapes.VolumeHistory | Response:
    """Volume of a feed: by the minute for up to six hours, by the hour for up to two weeks, else by the day."""
    await hub.ledger.read(lambda tx: check_feed_shown(tx, caller, feed))
    now = hub.clock.now()
    end = minute_of(now if until is None else moment(until, now)) + 1
    found = await hub.ledger.read(lambda tx: tx.measured.traffic.minutes(since_minute=end - minutes, feed=feed))
    step = 1 if minutes <= MINUTES_BY_MINUTE else 60 if minutes <= MINUTES_BY_HOUR else 1_440
    points = arrivals((one for one in found if one.minute < end), step)
    if form is Form.CSV:
        return csv_answer(f"volume-{feed}", points, ("at", "products", "bytes", "peak_1s_bytes"))
    told = [shapes.Arrivals(**point) for point in points]
    return shapes.VolumeHistory(step_minutes=step, **range_out(end - minutes, end), points=told)


@router.get("/tree")
async def tree(hub: Hub) -> shapes.Tree:
    """The distribution tree: upstreams, this hub, its sites with their feeds; no addresses, no contacts."""
    return await hub.ledger.read(lambda tx: tree_of(tx, hub.live, name=hub.settings.name))


VOLUMES = tuple(shapes.FeedVolume.model_fields)
MINUTES_BY_MINUTE = 360
MINUTES_BY_HOUR = 14 * 1_440
