"""The program that follows a document in a reader's place notices results that differ from the document."""

import pytest

from kit.told import Block, blocks, lacks, part_of

DOCUMENT = """\
# Title

```sh stays
downburst hub
```

```text
page at http://…
```

    indented, and nobody's to type

```sh fill in
HUB=hub.example.edu
```
"""


def test_blocks_are_found_with_what_is_to_be_done_with_them() -> None:
    assert blocks(DOCUMENT) == [
        Block("sh", "stays", "downburst hub"),
        Block("text", "", "page at http://…"),
        Block("sh", "fill in", "HUB=hub.example.edu"),
    ]


@pytest.mark.parametrize(
    ("said", "shown", "missing"),
    [
        ("one\ntwo\nthree\n", "one\nthree", None),
        ("one\ntwo\n", "two\none", "one"),
        ("│ unl.edu   │ yes │ 0 │", "│ unl.edu │ yes │ …", None),
        ("│ unl.edu   │ no │ 0 │", "│ unl.edu │ yes │ …", "│ unl.edu │ yes │ …"),
        ("at 12.5 ms of 3", "… ms of", None),
        ("a.b", "a…b", None),
        ("axb", "a.b", "a.b"),
        ("whatever", "", None),
        ("", "something", "something"),
    ],
)
def test_what_is_shown_stands_there_in_its_order(said: str, shown: str, missing: str | None) -> None:
    assert lacks(said, shown) == missing


def test_a_part_ends_at_the_next_heading_and_a_beginning_at_the_named_one() -> None:
    text = "# Title\nzero\n## One\nfirst\n## Two\nsecond\n### Inner\nmore\n## Three\nthird\n"
    assert part_of(text, "Two", None) == "second\n### Inner\nmore\n"
    assert part_of(text, None, "Two") == "# Title\nzero\n## One\nfirst"
    assert part_of(text, None, None) == text
    for heading, until in (("Four", None), (None, "Four")):
        with pytest.raises(AssertionError, match="there is no part 'Four'"):
            part_of(text, heading, until)
