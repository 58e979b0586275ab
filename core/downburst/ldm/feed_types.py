"""LDM's feed types: sets of 32 feeds with names and expressions; the same as crate ldm6, feed_type.rs."""

import re

from downburst.foundation.errors import BadInput


def parse_feed_type(text: str) -> int:
    """Bits of an expression: names joined by `|` or `+` and `-` from left to right, with `~` and parentheses."""
    expression = _Expression(text)
    bits = expression.sum(depth=0)
    if expression.peek():
        raise expression.wrong("something other than an operator")
    return bits


def feed_type_name(bits: int) -> str:
    """The names with the fewest words, largest unions first."""
    words = []
    for name, known in NAMES.items():
        if known and bits & known == known:
            words.append(name)
            bits &= ~known
    return "|".join(words + [f"FT{bit}" for bit in range(32) if bits >> bit & 1]) or "NONE"


def each_feed(bits: int) -> list[str]:
    """The feeds of a set, one name each."""
    return [feed_type_name(1 << bit) for bit in range(32) if bits >> bit & 1]


class _Expression:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def sum(self, depth: int) -> int:
        bits = self.term(depth)
        while True:
            if self.skip("|") or self.skip("+"):
                bits |= self.term(depth)
            elif self.skip("-"):
                bits &= ~self.term(depth)
            else:
                return bits

    def term(self, depth: int) -> int:
        if depth > _DEEPEST:
            raise self.wrong("too many nested complements and parentheses")
        if self.skip("~"):
            return ANY & ~self.term(depth + 1)
        if not self.skip("("):
            return self.name()
        bits = self.sum(depth + 1)
        if not self.skip(")"):
            raise self.wrong("a parenthesis is not closed")
        return bits

    def name(self) -> int:
        self.peek()
        found = _WORD.match(self.text, self.at)
        if found is None:
            raise self.wrong("a name is missing")
        bits = _named(found[0].upper())
        if bits is None:
            raise self.wrong(f"no feed is called {found[0]}")
        self.at = found.end()
        return bits

    def peek(self) -> str:
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1
        return self.text[self.at : self.at + 1]

    def skip(self, wanted: str) -> bool:
        found = self.peek() == wanted
        self.at += found
        return found

    def wrong(self, reason: str) -> BadInput:
        sentence = f"the feed type {self.text!r} can't be used: {reason} at character {self.at + 1}"
        return BadInput(sentence, position=self.at + 1)


def _named(name: str) -> int | None:
    if (bits := NAMES.get(name)) is not None:
        return bits
    if (bits := ALIASES.get(name)) is not None:
        return bits
    number = name.removeprefix("FT")
    if name != number and number.isdecimal() and int(number) < 32:
        return 1 << int(number)
    return None


ANY = 0xFFFF_FFFF

_SINGLE = (  # noqa: SIM905 - a table of names reads better as words
    "PPS DDS HDS IDS SPARE UNIWISC PCWS FSL2 FSL3 FSL4 FSL5 GPSSRC CONDUIT FNEXRAD LIGHTNING WSI SATELLITE FAA604 "
    "GPS FNMOC GEM NIMAGE NTEXT NGRID NPOINT NGRAPH NOTHER NEXRAD3 NEXRAD2 NXRDSRC EXP"
).split()

NAMES = {
    "ANY": ANY,
    "NPORT": 0x07C0_0000,
    "UNIDATA": 0x2F,
    "WMO": 0xF,
    "DDPLUS": 0x3,
    "FSL": 0x7C0,
    "NMC": 0x3800,
    **{name: 1 << bit for bit, name in enumerate(_SINGLE)},
    "NONE": 0,
}
"""Names for output: unions first, larger ones before their subsets."""

ALIASES = {
    alias: NAMES[name]
    for name, aliases in {
        "DDS": "DOMESTIC",
        "HDS": "HRS",
        "IDS": "INTNL",
        "SPARE": "NPS",
        "UNIWISC": "MCIDAS",
        "PCWS": "ACARS",
        "FSL2": "PROFILER",
        "GPSSRC": "AFOS NMC1",
        "CONDUIT": "NMC2 NCEPH",
        "FNEXRAD": "NMC3",
        "LIGHTNING": "NLDN",
        "SATELLITE": "DIFAX",
        "FAA604": "FAA 604",
        "FNMOC": "SEISMIC NOGAPS",
        "GEM": "CMC",
        "NIMAGE": "IMAGE",
        "NTEXT": "TEXT",
        "NGRID": "GRID",
        "NPOINT": "POINT NBUFR BUFR",
        "NGRAPH": "GRAPH",
        "NOTHER": "OTHER",
        "NEXRAD3": "NNEXRAD NEXRAD",
        "NEXRAD2": "CRAFT NEXRD2",
        "FSL": "PROFS",
    }.items()
    for alias in aliases.split()
}
"""Further names accepted in input."""

_DEEPEST = 32
_WORD = re.compile("[A-Za-z0-9]+")
