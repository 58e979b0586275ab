"""Writes the generated pages: docs/settings.md, docs/reference/api.md, docs/reference/commands."""

from pathlib import Path

from unit.documentation import api_page, commands_pages, settings_page


def pages() -> dict[Path, str]:
    """Each generated file with its text."""
    return {
        settings_page.FILE: settings_page.markdown(),
        api_page.FILE: api_page.markdown(),
        **commands_pages.pages(),
    }


def stale() -> list[str]:
    """The names of files that differ from their text, are missing, or have lost their command."""
    wanted = pages()
    there = {*commands_pages.FOLDER.glob("*.md"), *wanted}
    return sorted(path.name for path in there if not path.is_file() or path.read_text() != wanted.get(path))


if __name__ == "__main__":
    texts = pages()
    commands_pages.FOLDER.mkdir(parents=True, exist_ok=True)
    for path in set(commands_pages.FOLDER.glob("*.md")) - set(texts):
        path.unlink()
    for path, text in texts.items():
        path.write_text(text)
