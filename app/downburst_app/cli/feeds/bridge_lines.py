"""The way of a product through bridges, in lines for people."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from downburst_app.cli.client import milliseconds


def bridge_lines(product: dict[str, Any]) -> Iterator[str]:
    """The lines about a traced product: the notification by which it came, and its announcements by publishers."""
    statement = product["bridged"]["statement"]
    if statement is not None:
        yield f"from WIS2  {statement['topic']}, notification {statement['notification_id']} ({statement['kind']})"
        yield f"           published {statement['published_at'][:19]}, {_heard(statement, product['stored_at'])}"
    for one in product["bridged"]["announced"]:
        yield f"to WIS2    {_announced(one)}"


def _heard(statement: dict[str, Any], stored_at: str) -> str:
    heard = statement["heard"]
    if heard is None:
        return f"in the log {_after(statement['published_at'], stored_at)} later"
    waited = _after(statement["published_at"], heard["heard_at"])
    return f"heard by {heard['bridge']} {waited} later, in the log {_after(heard['heard_at'], stored_at)} after that"


def _after(begin: str, end: str) -> str:
    """The time between two instants; of different clocks it may be negative."""
    return milliseconds((datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds() * 1_000)


def _announced(one: dict[str, Any]) -> str:
    if one["step"] == "announced":
        return f"{one['publisher']} announced it {one['announced_at'][:19]}, notification {one['notification_id']}"
    reason = f": {one['reason']}" if one["reason"] else ""
    return f"{one['publisher']}: {one['step']}{reason}"
