"""A sentence that people see, and the rule that tells one from keys, queries and identifiers."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sentence:
    """One text with its area and its file; values that are filled in are `{…}`."""

    area: str
    file: str
    text: str


def is_sentence(text: str) -> bool:
    """Whether a text has two words, one of them in lower case, and is not a query of a database."""
    bare = text.replace(HOLE, " ")
    words = bare.split()
    plain = [word for word in words if _WORD.fullmatch(word)]
    return len(plain) > 1 and any(_LOWER.fullmatch(word) for word in plain) and _QUERY.search(bare) is None


def collapsed(text: str) -> str:
    """On one line, each run of blanks as one blank."""
    return " ".join(text.split())


HOLE = "{…}"
_QUOTES = "\"'\u2018\u2019\u201c\u201d"
_WORD = re.compile(rf"[({_QUOTES}]*[A-Za-z][A-Za-z'\u2019-]*[){_QUOTES}.,;:?!…]*")
_LOWER = re.compile(rf"[({_QUOTES}]*[a-z]{{2,}}[){_QUOTES}.,;:?!…]*")
_QUERY = re.compile(
    r"(^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH|PRAGMA|ATTACH|VACUUM|SET|LOCK|TRUNCATE|GRANT|CALL)\s)"
    r"|\b(ORDER BY|GROUP BY|WHERE|NOT NULL|ON CONFLICT|PRIMARY KEY|AND NOT EXISTS)\b"
)
