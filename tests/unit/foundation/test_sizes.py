"""Sizes in user input."""

import pytest

from downburst.foundation.errors import BadInput
from downburst.foundation.sizes import parse_size_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [("8MiB", 2**23), ("64 KiB", 65_536), ("0.5GiB", 2**29), ("2MB", 2_000_000), ("9kB", 9_000), (" 4096 ", 4_096)],
)
def test_sizes_with_units(text: str, size: int) -> None:
    assert parse_size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "8M", "8Mb", "8 mib", "-1", "1e9", "8MiB8", "MiB", "1" * 13, "٣MiB"])
def test_what_is_no_size_is_refused_by_a_sentence(text: str) -> None:
    with pytest.raises(BadInput, match="is not a size; write bytes with KiB, MiB or GiB"):
        parse_size_bytes(text)
