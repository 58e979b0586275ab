"""Environment files are read as shells and Docker Compose read them."""

import pytest

from downburst.foundation.errors import BadInput
from downburst.wis2.imports.files import ConfigFile
from downburst.wis2.imports.variables import counted, read_variables, repeated, value_of


def values(text: str) -> dict[str, str | None]:
    found = counted(read_variables(ConfigFile("a.env", text)))
    return {name: value_of(name, found) for name in found}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=b", "b"),
        ("export A=b", "b"),
        ("  A = b  ", "b"),
        ("A=", ""),
        ("A=b # a comment", "b"),
        ("A=b#c", "b#c"),
        ("A=# a comment", ""),
        ('A="b # c"', "b # c"),
        ('A="b" # c', "b"),
        ("A='b # c'", "b # c"),
        ('A="say \\"b\\""', 'say "b"'),
        ('A="two\\nlines"', "two\nlines"),
        ('A=<a href="https://osm.example">OSM</a> and others', '<a href="https://osm.example">OSM</a> and others'),
        ("A=b=c", "b=c"),
    ],
)
def test_a_line_has_a_value(line: str, value: str) -> None:
    assert values(line) == {"A": value}


def test_variables_are_put_in_wherever_they_are_given() -> None:
    text = "URL=${HOST}/oapi\nHOST=http://$NAME\nNAME=hub\nLITERAL='${NAME}'\nHOME_OF=${PWD}/data\nPORT=${P:-1883}"
    assert values(text) == {
        "URL": "http://hub/oapi",
        "HOST": "http://hub",
        "NAME": "hub",
        "LITERAL": "${NAME}",
        "HOME_OF": "${PWD}/data",
        "PORT": "1883",
    }


def test_variables_that_name_each_other_end() -> None:
    assert values("A=${B}\nB=x${A}") == {"A": "x${A}", "B": "x${B}"}


def test_values_that_double_in_each_line_stay_short() -> None:
    doubling = "\n".join(f"A{number}=${{A{number + 1}}}${{A{number + 1}}}" for number in range(60))
    assert max(len(value or "") for value in values(f"{doubling}\nA60={'x' * 1_000}").values()) <= 4_000


def test_the_last_of_repeated_variables_counts() -> None:
    found = read_variables(ConfigFile("a.env", "A=1\n# comment\n\nA=2"))
    assert value_of("A", counted(found)) == "2"
    assert [str(one.spot) for one in repeated(found)] == ["a.env:1"]


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("A=1\nB", 2, "neither NAME=VALUE nor a comment"),
        ("A=1\nnot a setting", 2, "neither NAME=VALUE nor a comment"),
        ('A="hidden', 1, "a quotation mark is not closed"),
        ("A='hidden' more", 1, "text follows it"),
    ],
)
def test_a_broken_line_is_named_and_not_quoted(text: str, line: int, part: str) -> None:
    with pytest.raises(BadInput, match=part) as error:
        read_variables(ConfigFile("a.env", text))
    assert error.value.sentence.startswith(f"a.env:{line}: ")
    assert "hidden" not in error.value.sentence
