"""Collects all sentences that people see in tests/golden/sentences.txt, and checks them and the documents.

Run it after a change of any: `.venv/bin/python scripts/sentences.py`. With `--check` it lists each sentence that
breaks a rule of scripts/prose/rules.py, and ends with 1 if there is one or the file is stale.
"""

import fnmatch
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from prose import documents, page, python, rules, rust
from prose.found import Sentence

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "tests" / "golden" / "sentences.txt"
COMMAND = ".venv/bin/python scripts/sentences.py"


def main() -> int:
    """Writes the file; with --check looks for what is wrong instead."""
    if "--check" not in sys.argv[1:]:
        FILE.write_text(inventory())
        return 0
    wrong = list(findings())
    print("\n".join(wrong))
    stale = FILE.read_text() != inventory()
    print(f"{len(wrong)} sentences break a rule; {FILE.relative_to(ROOT)} is {'stale' if stale else 'up to date'}")
    return 1 if wrong or stale else 0


def inventory() -> str:
    """The whole file: areas, files in them, and each sentence once."""
    found = sorted(of_product(), key=lambda one: (AREAS.index(one.area), one.file, one.text))
    parts = [HEAD]
    for area, of_area in groupby(found, lambda one: one.area):
        parts.append(f"\n== {area} ==\n")
        for file, of_file in groupby(of_area, lambda one: one.file):
            parts.append(f"\n{file}\n")
            parts += [f"  {one.text}\n" for one in of_file]
    return "".join(parts)


def findings() -> Iterator[str]:
    """A line for each rule that a sentence or a document breaks: file, sentence, rule."""
    for one in sorted({*of_product(), *of_documents()}, key=lambda one: (one.file, one.text)):
        for rule in rules.broken(one.text):
            yield _finding(one.file, one.text, rule)
    for name in tracked("*.py", "*.rs", "*.ts", "*.svelte", "*.sh", "*.yaml", "*.yml"):
        if not name.startswith(("scripts/prose/", "tests/unit/packaging/test_sentences.py")):
            for rule in rules.phrases((ROOT / name).read_text()):
                yield _finding(name, "(in a comment, a key or a split text)", rule)


def _finding(file: str, text: str, rule: rules.Rule) -> str:
    return f"{file}: {text}\n    breaks /{rule.pattern.pattern}/; instead: {rule.instead}"


@cache
def of_product() -> frozenset[Sentence]:
    """Everything that the programs and the page show."""
    return frozenset(_of_product())


def _of_product() -> Iterator[Sentence]:
    yield from python.sentences(ROOT, tracked(*PYTHON, without=("*/migrations/*",)))
    yield from rust.sentences(ROOT, tracked(*RUST, without=RUST_OF_TESTS))
    yield from page.sentences(ROOT, tracked(*PAGE, without=("*.test.ts", "*/fixtures/*", "*.d.ts")))


def of_documents() -> Iterator[Sentence]:
    """Prose and quoted output of the documents."""
    return documents.sentences(ROOT, tracked("*.md"))


def tracked(*patterns: str, without: tuple[str, ...] = ()) -> list[str]:
    """Files of the repository by their patterns, new ones too; an asterisk stands for slashes as well."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    return sorted(
        name
        for name in set(listed)
        if any(fnmatch.fnmatchcase(name, one) for one in patterns)
        and not any(fnmatch.fnmatchcase(name, one) for one in without)
        and (ROOT / name).is_file()
    )


AREAS = ["command line", "api", "alarms", "plans", "log", "hub", "node", "help of the node", "page"]
PYTHON = (
    "app/*.py",
    "analyze/*.py",
    "core/*.py",
    "api/*.py",
    "client/*.py",
    "contract/*.py",
    "scheduler/*.py",
    "services/*.py",
    "workers/downburst_worker/*.py",
)
RUST = ("workers/crates/*/src/*.rs", "workers/log-kafka/src/*.rs")
RUST_OF_TESTS = ("*/tests.rs", "*/tests/*", "workers/crates/sim/*", "workers/crates/testkit/*")
PAGE = ("services/dashboard/src/*.svelte", "services/dashboard/src/*.ts", "services/dashboard/index.html")
HEAD = f"""\
All sentences that people see, by area and file: the command line, problem documents of the API, alarms, reasons of
plans, log lines of warnings and errors, the node, the page. Values that are filled in are {{…}}.
Made by a script, which a test asks for after each change of a sentence: {COMMAND}
"""

if __name__ == "__main__":
    sys.exit(main())
