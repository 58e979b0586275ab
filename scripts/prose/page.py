"""Sentences of the page: markup of Svelte, attributes that are shown or read aloud, and strings of TypeScript."""

import re
from collections.abc import Iterator
from pathlib import Path

from prose.found import HOLE, Sentence, collapsed, is_sentence


def sentences(root: Path, names: list[str]) -> Iterator[Sentence]:
    """Those of all the named files."""
    for name in names:
        text = (root / name).read_text()
        found = _of_script(text) if name.endswith(".ts") else _of_markup(text)
        for one in found:
            yield Sentence("page", name, one)


def _of_script(text: str) -> Iterator[str]:
    for match in _STRING.finditer(_IMPORT.sub("", text)):
        token = match[0]
        if token[0] not in "'\"`":
            continue
        bare = collapsed(_with_holes(token[1:-1], "${").replace("\\n", " ").replace("\\", ""))
        if is_sentence(bare):
            yield bare
        for inner in _expressions(token, "${"):
            yield from _of_script(inner)


def _of_markup(text: str) -> Iterator[str]:
    for script in re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL):
        yield from _of_script(script)
    markup = re.sub(r"<(script|style)[^>]*>.*?</\1>|<!--.*?-->", "", text, flags=re.DOTALL)
    pieces: list[str] = []
    for kind, token in _pieces(markup):
        if kind == "text":
            pieces.append(token)
        elif kind == "value":
            pieces.append(HOLE)
            yield from _of_script(token)
        elif kind == "block" or _tag(token) not in _INLINE:
            yield from _text("".join(pieces))
            pieces = []
        if kind == "block":
            yield from _of_script(token)
        elif kind == "tag":
            yield from _of_attributes(token)
    yield from _text("".join(pieces))


def _pieces(markup: str) -> Iterator[tuple[str, str]]:
    """Tags, `{values}`, `{#blocks}` and the text between them."""
    at = start = 0
    while at < len(markup):
        if markup[at] == "{" or (markup[at] == "<" and re.match(r"</?[A-Za-z]", markup[at:])):
            if at > start:
                yield "text", markup[start:at]
            end = _end_of(markup, at)
            token = markup[at:end]
            kind = "tag" if token[0] == "<" else "block" if token[1:2] in tuple("#:/@") else "value"
            yield kind, token
            at = start = end
        else:
            at += 1
    if start < len(markup):
        yield "text", markup[start:]


def _end_of(text: str, at: int) -> int:
    """Behind the bracket that closes the one at `at`; strings and braces inside are passed over."""
    depth = 0
    place = at
    while place < len(text):
        sign = text[place]
        if sign == "{":
            depth += 1
        elif sign == "}":
            depth -= 1
        elif sign in "'\"`" and (depth or text[at] == "<"):
            place = text.find(sign, place + 1)
            if place < 0:
                return len(text)
        if depth == 0 and sign == ("}" if text[at] == "{" else ">"):
            return place + 1
        place += 1
    return len(text)


def _of_attributes(tag: str) -> Iterator[str]:
    component = re.match(r"<[A-Z]", tag) is not None
    for match in _ATTRIBUTE.finditer(tag):
        shown = match["name"] in _SHOWN or (component and match["name"] not in _HIDDEN)
        if shown and match["text"] is not None:
            yield from _text(_with_holes(match["text"], "{"))
    for inner in _expressions(tag, "{"):
        if not re.match(r"\s*['`][a-z -]*['`]\s*$", inner):
            yield from _of_script(inner)


def _text(piece: str) -> Iterator[str]:
    bare = collapsed(re.sub(r"&(\w+);", lambda match: _ENTITIES.get(match[1], " "), piece))
    if re.search(r"[A-Za-z]{2}", bare.replace(HOLE, "")):
        yield bare


def _with_holes(text: str, opening: str) -> str:
    for inner in _expressions(text, opening):
        text = text.replace(f"{opening}{inner}}}", HOLE)
    return text


def _expressions(text: str, opening: str) -> Iterator[str]:
    at = text.find(opening)
    while at >= 0:
        end = _end_of(text, at + len(opening) - 1)
        yield text[at + len(opening) : end - 1]
        at = text.find(opening, end)


def _tag(token: str) -> str:
    found = re.match(r"</?([\w-]+)", token)
    return found[1] if found else ""


_STRING = re.compile(
    r"//[^\n]*|/\*.*?\*/|(?<=[(,=:\[!&|?] )/(?:\\.|[^/\\\n])+/[a-z]*"
    r"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|\$\{(?:[^{}]|\{[^{}]*\})*\}|[^`\\])*`",
    re.DOTALL,
)
_IMPORT = re.compile(r"^\s*(?:import|export) [^\n]*? from '[^']*'|^\s*import '[^']*'", re.MULTILINE)
_ATTRIBUTE = re.compile(r"(?P<name>[\w:-]+)=(?:\"(?P<text>[^\"]*)\"|\{)")
_SHOWN = frozenset({"title", "aria-label", "placeholder", "alt", "label", "aria-description", "aria-roledescription"})
_HIDDEN = frozenset({"class", "id", "href", "style", "type", "testid", "data-testid"})
_INLINE = frozenset({"a", "abbr", "b", "code", "em", "i", "kbd", "span", "strong", "time", "input"})
_ENTITIES = {"nbsp": " ", "amp": "&", "lt": "<", "gt": ">", "hellip": "…", "middot": "·", "quot": '"'}
