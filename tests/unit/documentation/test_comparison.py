"""The comparison with other monitors and the questions to a reader agree, and name things that exist."""

import json
import re
from collections import Counter

import pytest

from unit.documentation.commands_pages import ROOT

DOCS = ROOT / "docs"
PLACES = ("", "tests/system", "services/dashboard/src")
SYSTEMS = 7
SOURCE = re.compile(r"\(([A-Z]\d(?:, [A-Z]\d)*)\)")


def rows(document: str, *, first: str) -> list[list[str]]:
    """The cells of all rows whose first cell is one letter of these and a number."""
    lines = (DOCS / document).read_text().splitlines()
    return [re.split(r" *(?<!\\)\| *", line.strip("| ")) for line in lines if re.match(rf"\| [{first}]\d* \|", line)]


def answers() -> list[list[str]]:
    return rows("comparison.md", first="TQ")


def questions() -> list[list[str]]:
    return rows("page-questions.md", first="Q")


def test_both_documents_have_the_same_twelve_questions() -> None:
    asked = {number: question for number, question, *_ in questions()}
    assert list(asked) == [f"Q{number}" for number in range(1, 13)]
    assert {cells[0]: cells[1] for cells in answers() if cells[0].startswith("Q")} == asked


def test_seven_tasks_and_twelve_questions_have_an_answer_for_each_system() -> None:
    assert Counter(cells[0][0] for cells in answers()) == {"T": 7, "Q": 12}
    for cells in answers():
        assert len(cells) == 2 + SYSTEMS, cells[0]
        assert all(cells), cells[0]


def test_each_answer_of_ours_names_the_file_in_which_it_is_counted() -> None:
    for number, _, ours, *_ in answers():
        named = re.findall(r"`([\w/-]+\.(?:py|svelte|ts|md))`", ours)
        assert named, number
        for file in named:
            assert any((ROOT / place / file).is_file() for place in PLACES), f"{number}: there is no {file}"


def test_answers_of_others_that_count_something_name_a_source_that_is_listed() -> None:
    listed = [source for source, *_ in rows("comparison.md", first="USWFGA")]
    assert len(listed) == len(set(listed))
    text = (DOCS / "comparison.md").read_text()
    cited = {source for group in SOURCE.findall(text) for source in group.split(", ")}
    assert cited == set(listed)
    for number, _, _, *others in answers():
        for cell in others:
            assert not re.match(r"(?:at least )?\d", cell) or SOURCE.search(cell), f"{number}: {cell}"


@pytest.mark.parametrize("cells", questions(), ids=lambda cells: cells[0])
def test_a_question_is_one_of_a_named_picture_and_of_a_route(cells: list[str]) -> None:
    _, question, picture, place, key = cells
    pictures = {letter for letter, *_ in rows("page-questions.md", first="ABCDEF")}
    routes = json.loads((DOCS / "openapi.json").read_text())["paths"]
    assert len(pictures) == 6
    assert question.endswith("?")
    assert picture in pictures
    assert place
    assert set(re.findall(r"`([^`]+)`", key)) <= set(routes)
