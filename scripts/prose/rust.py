"""Sentences of Rust: string literals outside of tests, tracing below warning and assertions, and help of clap."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from prose.found import HOLE, Sentence, collapsed, is_sentence


def sentences(root: Path, names: list[str]) -> Iterator[Sentence]:
    """Those of all the named files; modules that only tests compile have none."""
    texts = {name: (root / name).read_text() for name in names}
    tests = {file for name, text in texts.items() for file in _test_modules(name, text)}
    for name, text in texts.items():
        if not any(name.startswith(one) for one in tests):
            for area, found in _Reader(text).strings():
                sentence = collapsed(_HOLES.sub(HOLE, found).replace("{{", "{").replace("}}", "}"))
                if is_sentence(sentence):
                    yield Sentence(area, name, sentence)


@dataclass
class _Reader:
    """One pass over a file's tokens; `calls` has the macro or function of each open bracket."""

    text: str
    calls: list[str] = field(default_factory=list)
    word: str = ""

    def strings(self) -> Iterator[tuple[str, str]]:
        text = _without_tests(self.text)
        helping = [range(*span) for span in _items(text, _CLAP)]
        for match in _TOKEN.finditer(text):
            kind, token = match.lastgroup, match[0]
            if kind == "string" and not self._is_hidden():
                yield self._area(), _unescaped(token)
            elif kind == "raw" and not self._is_hidden():
                yield self._area(), token[token.index('"') + 1 : token.rindex('"')]
            elif kind == "help" and any(match.start() in span for span in helping):
                yield "help of the node", " ".join(line.lstrip("/ ") for line in token.splitlines())
            elif kind == "word":
                self.word = token
                continue
            elif kind == "open":
                self.calls.append(self.word)
            elif kind == "close" and self.calls:
                self.calls.pop()
            if kind != "blank":
                self.word = f"{self.word}!" if kind == "bang" and self.word else ""

    def _is_hidden(self) -> bool:
        return any(call in _HIDDEN for call in self.calls)

    def _area(self) -> str:
        return "log" if any(call in _LOUD for call in self.calls) else "node"


def _without_tests(text: str) -> str:
    for start, end in reversed(list(_items(text, _CFG_TEST))):
        text = text[:start] + text[end:]
    return text


def _items(text: str, attribute: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Where items with an attribute lie: from it to their semicolon or the end of their braces."""
    done = 0
    for found in attribute.finditer(text):
        if found.start() < done:
            continue
        depth, done = 0, found.end()
        for match in _TOKEN.finditer(text, found.end()):
            done = match.end()
            depth += {"{": 1, "}": -1}.get(match[0], 0)
            if depth == 0 and match[0] in (";", "}"):
                break
        yield found.start(), done


def _test_modules(name: str, text: str) -> Iterator[str]:
    folder = Path(name).parent if Path(name).name in ("mod.rs", "lib.rs", "main.rs") else Path(name).with_suffix("")
    for module in re.findall(r"#\[cfg\(test\)\]\s*(?:pub(?:\([a-z]+\))? )?mod (\w+);", text):
        yield f"{folder / module}.rs"
        yield f"{folder / module}/"


def _unescaped(token: str) -> str:
    text = re.sub(r"\\\n\s*", "", token[token.index('"') + 1 : -1])
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), text)


_HOLES = re.compile(r"(?<!\{)\{[\w.]*(:[^{}]*)?\}(?!\})")
_CFG_TEST = re.compile(r"#\[cfg\((?:test|all\(test[^\]]*)\)\]")
_CLAP = re.compile(r"#\[derive\([^)]*\b(?:Parser|Args|Subcommand|ValueEnum)\b[^)]*\)\]")
_TOKEN = re.compile(
    r"""(?P<help>///[^\n]*(?:\n[ \t]*///[^\n]*)*)
    |(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<raw>\bb?r(?P<hashes>\#*)".*?"(?P=hashes))
    |(?P<string>b?"(?:\\.|[^"\\])*")|(?P<char>b?'(?:\\[^\n]{1,10}?|[^'\\\n])')|(?P<life>'\w+)
    |(?P<word>\w+)|(?P<bang>!)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<blank>[ \t\n]+)|(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_LOUD = frozenset({"warn!", "error!"})
_QUIET = frozenset({"info!", "debug!", "trace!", "info_span!", "debug_span!"})
_ASSERTIONS = frozenset({"assert!", "assert_eq!", "assert_ne!", "debug_assert!", "debug_assert_eq!", "panic!"})
_UNREACHED = frozenset({"unreachable!", "todo!", "expect", "expect_err"})
_ATTRIBUTES = frozenset({"doc", "cfg", "cfg_attr", "allow", "instrument"})
_HIDDEN = _QUIET | _ASSERTIONS | _UNREACHED | _ATTRIBUTES
