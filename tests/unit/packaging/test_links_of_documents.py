"""Links in the documents have existing targets, and a decision that is named by its number exists."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parents[3]
DECISIONS = {int(path.name[:4]): path.name for path in (ROOT / "docs/adr").glob("[0-9]*.md")}
DOCS = ("docs", "docs/adr", "docs/reference", "docs/reference/commands")
NAMED = re.compile(r"\b(?:ADR|[Dd]ecision) (\d{1,4})\b")
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


def documents() -> Iterator[Path]:
    for folder in ("", *DOCS, "monitoring", "charts/downburst"):
        yield from sorted((ROOT / folder).glob("*.md"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", list(documents()), ids=name_of)
def test_links_lead_to_files_and_headings(document: Path) -> None:
    text = document.read_text()
    wrong = []
    for words, target in LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)):
        if re.match(r"[a-z+]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (document.parent / unquote(path)).resolve() if path else document
        if not there.exists():
            wrong.append(f"[{words}]({target}): there is no such file")
        elif anchor and there.suffix == ".md" and anchor not in headings(there):
            wrong.append(f"[{words}]({target}): there is no such heading")
        wrong.extend(_of_another_decision(words, target))
    named = re.findall(r"(?<![\w/.-])docs/[\w/-]+\.md", text)
    wrong += [f"{path}: there is no such file" for path in named if not (ROOT / path).exists()]
    wrong += [f"there is no decision {number}" for number in NAMED.findall(text) if int(number) not in DECISIONS]
    assert not wrong, f"{name_of(document)}: " + "; ".join(wrong)


def _of_another_decision(words: str, target: str) -> Iterator[str]:
    named, linked = NAMED.search(words), re.search(r"adr/(\d{4})-|^(\d{4})-", target)
    if named and linked and int(named[1]) != int(linked[1] or linked[2]):
        yield f"[{words}]({target}): the words name another decision than the link"


def headings(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    found: dict[str, int] = {}
    anchors = set()
    for line in re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL).splitlines():
        if match := re.match(r"#{1,6} +(.*?) *$", line):
            plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", match[1]).lower()
            slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
            anchors.add(slug if slug not in found else f"{slug}-{found[slug]}")
            found[slug] = found.get(slug, 0) + 1
    return anchors


def test_sources_name_decisions_that_exist() -> None:
    wrong = []
    for folder in _FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in _SOURCES and not _BUILT.intersection(path.parts) and path.is_file():
                named = NAMED.findall(path.read_text(errors="replace"))
                wrong += [f"{name_of(path)}: decision {it}" for it in named if int(it) not in DECISIONS]
    assert not wrong, wrong


_FOLDERS = (
    *(
        "core",
        "app",
        "analyze",
        "api",
        "client",
        "contract",
        "scheduler",
        "services",
        "workers",
        "bench",
        "tests",
        "packaging",
    ),
    "charts",
)
_SOURCES = {".py", ".rs", ".svelte", ".ts", ".yaml", ".toml", ".md"}
_BUILT = {"node_modules", "target", "dist", ".svelte-kit"}
