"""Sizes in user input: bytes, with a decimal or binary unit."""

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


_FACTORS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SIZE = re.compile(r"(?P<count>\d{1,12}(\.\d{1,6})?) ?(?P<unit>[KMG]iB|[kMG]?B)?", re.ASCII)
