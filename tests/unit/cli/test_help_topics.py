"""`downburst help`: topics, their documents, the manual, and words that are no topic."""

import stat
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from downburst.foundation.errors import Failure, NotFound
from downburst_app.cli import COMMANDS, app
from downburst_app.cli import help as topics


def shown(*words: str) -> str:
    return CliRunner().invoke(app, ["help", *words], env={"COLUMNS": "120"}, catch_exceptions=False).output


def test_every_topic_has_a_document_a_sentence_and_a_name_of_its_own() -> None:
    found = list(topics.topics_of(topics.documents()))
    assert len({topic.name for topic in found}) == len(found)
    assert [topic.name for topic in found if not topic.file.is_file() or len(topic.sentence) < 15] == []
    assert set(COMMANDS) <= {topic.name for topic in found if topic.section == 1}


def test_without_a_topic_all_are_listed() -> None:
    listed = shown()
    assert "troubleshooting" in listed
    assert "settings" in listed
    assert "circuits" in listed


def test_a_topic_is_rendered_where_no_manual_is_installed() -> None:
    text = shown("troubleshooting")
    assert "Troubleshooting by symptom" in text
    assert "##" not in text


def test_a_command_inside_a_group_has_its_place_on_the_page_of_the_group() -> None:
    assert "downburst circuits add" in shown("circuits", "add")


def test_a_word_that_is_no_topic_gets_the_nearest() -> None:
    with pytest.raises(NotFound, match=r"no topic 'troubleshoting'; the nearest is 'troubleshooting'") as raised:
        shown("troubleshoting")
    assert raised.value.exit_code == 2


def test_the_manual_is_opened_where_its_page_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    man = tmp_path / "man"
    man.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\n')
    man.chmod(man.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    topics.show_topic(["settings"])
    assert (tmp_path / "asked").read_text().splitlines() == ["--where 5 downburst-settings", "5 downburst-settings"]


def test_an_installation_without_documents_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "PLACES", ())
    with pytest.raises(Failure, match="not installed"):
        topics.show_topic(None)


def test_the_command_is_one_of_the_list() -> None:
    whole: Any = typer.main.get_command(app)
    assert "help" in whole.list_commands(None)
