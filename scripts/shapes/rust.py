"""Rust by its braces: good to about one per cent, which is enough for counts."""

import re
from collections.abc import Iterator
from pathlib import Path

from shapes.source import Sized, Source


def read(path: Path, root: Path, crate: Path) -> Source:
    """One file of a crate, without its `mod tests`."""
    text = without_tests(blanked(path.read_text()))
    parts = path.relative_to(crate / "src").with_suffix("").parts
    inner = [part for part in parts if part not in ("mod", "lib", "main")]
    module = "::".join([crate.name, *inner])
    source = Source(str(path.relative_to(root)), module, sum(1 for line in text.splitlines() if line.strip()))
    source.functions = [Sized(name, body.count("\n") + 1) for name, body in _bodies(FUNCTION, text)]
    source.types = [Sized(name, _fields(body)) for name, body in _bodies(STRUCT, text)]
    source.imports = {resolved for used in _used(text) if (resolved := _resolved(used, module, crate.name))}
    return source


def test_files(crate: Path) -> set[Path]:
    """The files that only tests compile: modules declared under `#[cfg(test)]`, with the modules below them."""
    found: set[Path] = set()
    for path in (crate / "src").rglob("*.rs"):
        folder = path.parent if path.stem in ("mod", "lib", "main") else path.parent / path.stem
        for name in TEST_FILE.findall(path.read_text()):
            found |= {folder / f"{name}.rs", *(folder / name).rglob("*.rs")}
    return found


def blanked(text: str) -> str:
    """The same text with comments and the insides of literals replaced by nothing, and every line kept."""
    return TOKEN.sub(
        lambda found: '""' + "\n" * found.group().count("\n") if found.group()[0] not in "/'" else _gap(found), text
    )


def _gap(found: re.Match[str]) -> str:
    word = found.group()
    return "\n" * word.count("\n") if word.startswith("/") else "' '"


def without_tests(text: str) -> str:
    """The text up to the file's own unit tests, which stand last."""
    found = TESTS.search(text)
    return text[: found.start()] if found else text


def _bodies(head: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    for found in head.finditer(text):
        start = text.find("{", found.end())
        semicolon = text.find(";", found.end())
        if start < 0 or 0 <= semicolon < start:
            continue
        yield found.group(1), text[found.start() : _closing(text, start) + 1]


def _closing(text: str, start: int) -> int:
    depth = 0
    for found in BRACE.finditer(text, start):
        depth += 1 if found.group() == "{" else -1
        if depth == 0:
            return found.start()
    return len(text) - 1


def _fields(body: str) -> int:
    """Fields of a struct with names: a colon at the first depth, once a line after rustfmt."""
    return sum(1 for line in body.splitlines()[1:] if FIELD.match(line))


def _used(text: str) -> Iterator[str]:
    """Every path of every `use`, with groups in braces taken apart."""
    for found in USE.finditer(text):
        yield from _paths("".join(found.group(1).split()))


def _paths(tree: str) -> Iterator[str]:
    head, brace, rest = tree.partition("{")
    if not brace:
        yield tree
        return
    depth, begin = 0, 0
    inner = rest[: rest.rfind("}")]
    for at, char in enumerate(inner + ","):
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            if inner[begin:at]:
                yield from _paths(head + inner[begin:at])
            begin = at + 1


def _resolved(used: str, module: str, crate: str) -> str | None:
    """The path from the crate's name; None for another crate."""
    parts = used.split("::")
    base = module.split("::")
    if parts[0] == "crate":
        return "::".join([crate, *parts[1:]])
    if parts[0] == "self":
        return "::".join([*base, *parts[1:]])
    if parts[0] != "super":
        return None
    while parts and parts[0] == "super":
        base, parts = base[:-1], parts[1:]
    return "::".join([*base, *parts])


TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^'\\])'""", re.DOTALL)
TESTS = re.compile(r"^#\[cfg\(test\)\]\s*\n(?:#\[[^\n]*\]\s*\n)*(?:pub(?:\([^)]*\))? )?mod \w+ \{", re.MULTILINE)
TEST_FILE = re.compile(
    r"^[ \t]*#\[cfg\(test\)\]\s*\n(?:[ \t]*#\[[^\n]*\]\s*\n)*[ \t]*(?:pub(?:\([^)]*\))? )?mod (\w+);", re.MULTILINE
)
FUNCTION = re.compile(r"^[ \t]*(?:pub(?:\([^)]*\))? )?(?:const )?(?:async )?(?:unsafe )?fn (\w+)", re.MULTILINE)
STRUCT = re.compile(r"^[ \t]*(?:pub(?:\([^)]*\))? )?struct (\w+)", re.MULTILINE)
FIELD = re.compile(r"\s+(?:pub(?:\([^)]*\))? )?\w+:")
USE = re.compile(r"^[ \t]*(?:pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
BRACE = re.compile(r"[{}]")
