"""Faults for the operator."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault for the operator, with its remedy."""

    at: datetime
    sentence: str
    feed: str | None = None
    site: str | None = None
    next_step: str = ""
