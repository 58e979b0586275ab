"""The node's answers about products and their deliveries, as types of deliveries."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from downburst.deliveries import (
    FoundDeliveries,
    ProductFacts,
    ReceiptFacts,
    SentBytes,
    SessionFacts,
    SiteFacts,
    WaitingBytes,
)
from downburst.deliveries.browsing import Browse, Browsed
from downburst.deliveries.naming import Meaning, ProductName
from downburst.domain.plans import Transport
from downburst.domain.subscriptions import IdFilter
from downburst.foundation.bounds import ORIGIN_MAX_US, ORIGIN_MIN_US
from downburst.foundation.clock import from_us, to_us

Line = dict[str, Any]


def deliveries_job(name: ProductName, *, feed: str, before: int | None, limit: int, site: str | None) -> Line:
    """The job that finds products' deliveries by name."""
    return {
        "feed": feed,
        "epoch": name.epoch,
        "sequence": name.sequence,
        "product_id": name.product_id,
        "digest": name.digest,
        "before": before,
        "limit": limit,
        "site": site,
    }


def deliveries_of_job(feed: str, epoch: str, sequence: int, site: str | None) -> Line:
    """The job for one product with a known number."""
    name = ProductName(Meaning.SEQUENCE, feed=feed, epoch=epoch, sequence=sequence)
    return deliveries_job(name, feed=feed, before=None, limit=1, site=site)


def found_deliveries(answer: Line) -> FoundDeliveries:
    """Parses the answer."""
    since = answer["receipts_since_us"]
    return FoundDeliveries(
        feed=answer["feed"],
        epoch=answer["epoch"],
        products=tuple((product_facts(line), tuple(map(_site, line["sites"]))) for line in answer["products"]),
        searched_to=answer["searched_to"],
        search_complete=answer["search_complete"],
        receipts_complete=answer["receipts_complete"],
        receipts_since=None if since is None else _date(since),
        at=_date(answer["at_us"]),
    )


def browse_job(wanted: Browse) -> Line:
    """The job that finds matching products."""
    values = asdict(wanted)
    since, until = values.pop("since"), values.pop("until")
    return {**values, "since_us": to_us(since), "until_us": None if until is None else to_us(until)}


def browsed(answer: Line) -> Browsed:
    """Parses the answer."""
    return Browsed(
        products=tuple(map(product_facts, answer["products"])),
        others=tuple(answer["others"]),
        shown=answer["shown"],
        matched=answer["matched"],
        matched_bytes=answer["matched_bytes"],
        sizes=_by_power(answer["sizes"]),
        silences=_by_power(answer["silences"]),
        searched_to=answer["searched_to"],
        complete=answer["complete"],
    )


def product_facts(line: Line) -> ProductFacts:
    """One product of a log."""
    return ProductFacts(
        feed=line["feed"],
        epoch=line["epoch"],
        sequence=line["sequence"],
        product_id=line["product_id"],
        origin=line["origin"],
        created_at=_date(line["created_us"]),
        stored_at=_date(line["stored_us"]),
        size_bytes=line["size"],
        digest=line["digest"],
        feed_class=line["class"],
        kept=line["kept"],
        properties=line.get("properties"),
    )


def _site(line: Line) -> SiteFacts:
    session = line["session"]
    return SiteFacts(
        site=line["site"],
        active=line["active"],
        subscriptions=line["subscriptions"],
        matching=tuple(IdFilter(wish["pattern"], wish["not_pattern"]) for wish in line["matching"]),
        session=None if session is None else _session(session),
        receipts=tuple(map(_receipt, line["receipts"])),
        sent_before=tuple(
            SentBytes(sent["feed"], sent["products"], sent["bytes"])
            for receipt in line["receipts"]
            for sent in receipt["sent_before"]
        ),
    )


def _session(line: Line) -> SessionFacts:
    return SessionFacts(
        standing=line["standing"],
        transport=Transport(line["transport"]),
        leg=line["leg"],
        lane=line["lane"],
        asked=line["asked"],
        numbers_before=line["numbers_before"],
        joining=line["joining"],
        leg_backlog_bytes=line["leg_backlog_bytes"],
        first_byte_at=_instant(line["first_byte_us"]),
        settled_to=line["settled_to"],
        pending=line["pending"],
        clock_offset_us=line["clock_offset_us"],
        clock_bound_us=line["clock_bound_us"],
        waiting=tuple(WaitingBytes(one["feed"], one["live"], one["bytes"]) for one in line["waiting"]),
    )


def _receipt(line: Line) -> ReceiptFacts:
    return ReceiptFacts(
        outcome=line["outcome"],
        lane=line["lane"],
        transport=Transport(line["transport"]),
        leg=line["leg"],
        repaired=line["repaired"],
        first_byte_at=_instant(line["first_byte_us"]),
        last_byte_at=_instant(line["last_byte_us"]),
        site_stored_at=_instant(line["site_stored_us"]),
        action_done_at=_instant(line["action_done_us"]),
        clock_offset_us=line["clock_offset_us"],
        clock_bound_us=line["clock_bound_us"],
    )


def _by_power(counts: dict[str, int]) -> dict[int, int]:
    return {int(power): count for power, count in counts.items()}


def _instant(microseconds: int | None) -> Any:
    return None if microseconds is None else _date(microseconds)


def _date(microseconds: int) -> datetime:
    """Logs and receipts of an earlier release may hold stamps outside the range of dates: clamped to it."""
    return from_us(min(max(microseconds, ORIGIN_MIN_US), ORIGIN_MAX_US))
