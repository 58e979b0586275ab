"""Datasets that are published: the facts that people state about them for WIS2's catalogues."""

import re
from dataclasses import dataclass
from datetime import datetime

from downburst.foundation.errors import BadInput


@dataclass(frozen=True, slots=True)
class Dataset:
    """The facts about a dataset that people state."""

    title: str
    description: str
    organization: str
    email: str
    website: str
    """Of the organization: an address by HTTPS."""
    country: str
    """ISO 3166, two or three letters."""
    keywords: tuple[str, ...]
    """At least three."""
    begin: datetime
    """The time of the first data."""
    bounds: tuple[float, float, float, float] | None = None
    """West, south, east and north, degrees; None: the whole world."""
    license_url: str | None = None
    """Recommended data have one."""

    def __post_init__(self) -> None:
        for name in ("title", "description", "organization"):
            text = getattr(self, name)
            if not text.strip() or len(text) > LONGEST_TEXT:
                raise BadInput(f"the {name} of a dataset has 1 to {LONGEST_TEXT} characters")
        if not LEAST_KEYWORDS <= len(self.keywords) <= MOST_KEYWORDS or not all(self.keywords):
            raise BadInput(f"a dataset has {LEAST_KEYWORDS} to {MOST_KEYWORDS} keywords")
        if not _EMAIL.fullmatch(self.email) or not _COUNTRY.fullmatch(self.country):
            raise BadInput("a dataset has an address of mail, and a country such as USA")
        for url in (self.website, self.license_url or self.website):
            if not _URL.fullmatch(url) or len(url) > LONGEST_URL:
                raise BadInput(f"{url[:100]!r} is no address; write one as https://unidata.example")
        if self.bounds is not None:
            west, south, east, north = self.bounds
            if not (-180 <= west < east <= 180 and -90 <= south < north <= 90):
                raise BadInput("the bounds of a dataset are west, south, east and north, in degrees and this order")


LONGEST_TEXT = 4_000
LEAST_KEYWORDS = 3
MOST_KEYWORDS = 50
LONGEST_URL = 300
_EMAIL = re.compile(r"[^@\s]{1,100}@[^@\s]{1,100}")
_COUNTRY = re.compile(r"[A-Z]{2,3}")
_URL = re.compile(r"https?://[^\s]+")
