"""Sizes in bytes: read from user input with a decimal or binary unit, and written in readable form."""

import re

from downburst.foundation.errors import BadInput


def parse_size_bytes(text: str) -> int:
    """Bytes of `8MiB`, `64 KiB`, `2MB` or `65536`; refuses a unit of bits."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise BadInput(
            f"{text[:40]!r} is not a size; write bytes with KiB, MiB or GiB, such as 8MiB, or with kB, MB or GB"
        )
    return round(float(found["count"]) * _FACTORS[found["unit"] or "B"])


def size_text(count: int) -> str:
    """A number of bytes in readable form."""
    for unit, step in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= step:
            return f"{count / step:.3g} {unit}"
    return f"{count} bytes"


_FACTORS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SIZE = re.compile(r"(?P<count>\d{1,12}(\.\d{1,6})?) ?(?P<unit>[KMG]iB|[kMG]?B)?", re.ASCII)
