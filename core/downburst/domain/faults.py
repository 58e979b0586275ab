"""Faults: what an operator should see."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Fault:
    """Something an operator should see, and what to do about it."""

    at: datetime
    sentence: str
    feed: str | None = None
    site: str | None = None
    next_step: str = ""
