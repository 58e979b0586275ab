"""The health of a bridge's connection, in one word and a sentence. Silence is never well."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from downburst.domain.bridges.standing import Standing


class BrokerHealth(StrEnum):
    """The health of a connection to a broker."""

    GOOD = "good"
    WARNING = "warning"
    ERROR = "error"
    OFF = "off"
    """Its bridge is switched off."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The health of a connection with the reason."""

    health: BrokerHealth
    sentence: str


def subscription_health(standing: Standing, topics: int, at: datetime) -> Judged:
    """The health of a subscription to so many topics."""
    if standing.connected_at is None:
        return Judged(BrokerHealth.ERROR, standing.fault)
    if standing.bound < topics:
        return Judged(BrokerHealth.ERROR, f"bound to {standing.bound} of {topics} topics")
    silent = at - (standing.last_at or standing.connected_at)
    if silent >= SILENT:
        return Judged(BrokerHealth.WARNING, f"no message for {_words(silent)}")
    return Judged(BrokerHealth.GOOD, "connected")


def outlet_health(standing: Standing, refusal: str) -> Judged:
    """The health of a publisher's connection; one that has nothing to announce is silent."""
    if standing.connected_at is None:
        return Judged(BrokerHealth.ERROR, standing.fault)
    return Judged(BrokerHealth.ERROR, refusal) if refusal else Judged(BrokerHealth.GOOD, "connected")


def _words(time: timedelta) -> str:
    hours = int(time.total_seconds() // 3_600)
    return f"{hours} h" if hours < TWO_DAYS_H else f"{hours // 24} d"


SILENT = timedelta(hours=1)
"""Global Brokers send several messages a second over all topics; most datasets have some each hour."""
TWO_DAYS_H = 48
