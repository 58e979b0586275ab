"""Headings of GTS bulletins (WMO-No. 386, part II): `TTAAii CCCC YYGGgg [BBB]`; pure."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heading:
    """The abbreviated heading of a bulletin."""

    ttaaii: str
    """Four letters and two digits."""
    cccc: str
    """The centre that compiled it."""
    yygggg: str
    """Day of the month, hour and minute."""
    bbb: str | None = None
    """A correction, an amendment, a late bulletin or a segment."""

    @property
    def levels(self) -> str:
        """The end of a gateway's topic (guide to the transition to WIS2, 3.1.3)."""
        return "/".join((*self.ttaaii[:4], self.ttaaii[4:], self.cccc))

    @property
    def is_update(self) -> bool:
        """A correction or an amendment of an earlier bulletin (table BBB)."""
        return self.bbb is not None and self.bbb[:2] in {"CC", "AA"}


def heading_in(content: bytes) -> Heading | None:
    """The heading in the first bytes of a bulletin; None: it has none."""
    found = _HEADING.search(content[:WITHIN_BYTES])
    if found is None:
        return None
    ttaaii, cccc, yygggg, bbb = (part.decode() for part in found.groups(b""))
    return Heading(ttaaii, cccc, yygggg, bbb or None)


WITHIN_BYTES = 120
"""A starting line and the heading; the heading of all 164 bulletins of a survey was found there."""
_HEADING = re.compile(
    rb"(?:^|[\r\n ])([A-Z]{4}[0-9]{2}) ([A-Z]{4}) ([0-3][0-9][0-2][0-9][0-5][0-9])(?: ([A-Z]{3}))?[ \r\n]*[\r\n]"
)
