"""The names of received files: shared golden cases, and round trips of any name."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downburst.foundation.file_names import FileNameError, ReceivedName, decode, encode

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[2] / "golden" / "file-names.json").read_text())


def name_of(case: dict[str, Any]) -> ReceivedName:
    return ReceivedName(case["feed"], int(case["epoch"], 16), case["sequence"], case["id"])


@pytest.mark.parametrize("case", GOLDEN["names"], ids=lambda case: case["why"])
def test_golden_names_are_written_and_read(case: dict[str, Any]) -> None:
    assert encode(name_of(case)) == case["path"]
    assert decode(case["path"]) == name_of(case)


@pytest.mark.parametrize("case", GOLDEN["refused"], ids=lambda case: case["why"])
def test_names_that_no_site_writes_are_refused(case: dict[str, Any]) -> None:
    with pytest.raises(FileNameError):
        decode(case["path"])


ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=255).filter(
    lambda text: len(text.encode()) <= 255
)
awkward_ids = st.text(st.sampled_from("./~%_ xé"), min_size=1, max_size=120)
names = st.builds(
    ReceivedName,
    feed=st.text(
        st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="/\\"), min_size=1, max_size=64
    ),
    epoch=st.integers(0, 2**64 - 1),
    sequence=st.integers(1, 2**64 - 1),
    product_id=ids | awkward_ids,
)


@given(names)
def test_every_name_survives_and_stays_inside_its_directory(name: ReceivedName) -> None:
    path = encode(name)
    assert decode(path) == name
    components = path.split("/")
    assert all(len(component) <= 255 and component.isascii() for component in components)
    assert all(component.strip(".~") and not component.startswith(".") for component in components)
    assert os.path.normpath(path) == path


@given(names, names)
def test_two_products_never_share_a_path(one: ReceivedName, other: ReceivedName) -> None:
    if one != other:
        first, second = encode(one), encode(other)
        assert first != second
        assert not second.startswith(first + "/")


@given(st.text(st.sampled_from("TX/0a1-_%2E~."), max_size=60))
def test_any_path_is_refused_or_is_the_one_name_of_its_product(path: str) -> None:
    try:
        name = decode(path)
    except FileNameError:
        return
    assert encode(name) == path
