"""Commands of a document, typed as it tells its reader: block by block, in a shell, in the order of the document.

A block of `sh` runs to its end and must succeed. A word behind `sh` changes its treatment:

* `stays`: it continues in a terminal of its own until the reader ends it;
* `again`: it is repeated until the output of the next block appears, as a waiting reader does;
* `fill in`: it sets the reader's own values (`NAME=value`); the test replaces all of them with its own;
* `setup`: it makes the environment of the tests, and is not run.

A block of `text` is the output of the block before it: its lines appear in this order, `…` stands for anything.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kit.namespaces import Lab
from kit.node import node_binary
from kit.patience import wait_for

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Block:
    """A fenced block, with the words behind its language."""

    language: str
    word: str
    text: str


class Reader:
    """A reader who follows documents on a host of a lab, with an empty home and the results of `make setup`."""

    def __init__(self, lab: Lab, host: str, home: Path, fills_in: Mapping[str, str] | None = None) -> None:
        self._lab, self._host, self._home = lab, host, home
        self._fills_in = dict(fills_in or {})
        self._terminals: list[subprocess.Popen[str]] = []
        (home / "bin").mkdir(parents=True)
        (home / "bin" / "downburst-node").symlink_to(node_binary())
        (home / "README.md").symlink_to(ROOT / "README.md")

    def follow(self, document: Path, *, part: str | None = None, until: str | None = None) -> None:
        """Follows the whole document, up to the heading `until`, or the part under this heading."""
        told = blocks(part_of(document.read_text(), part, until))
        assert any(block.language == "sh" for block in told), f"{document.name} tells nobody to type anything"
        for number, block in enumerate(told):
            if block.language == "sh":
                after = told[number + 1] if number + 1 < len(told) else None
                self._do(block, after.text if after and after.language == "text" else "", document.name)

    def close(self) -> None:
        """Ends the processes in terminals, the latest first."""
        for terminal in reversed(self._terminals):
            if terminal.poll() is None:
                os.killpg(terminal.pid, signal.SIGTERM)
                terminal.wait(timeout=60)

    def _do(self, block: Block, shown: str, where: str) -> None:
        match block.word:
            case "setup":
                return
            case "fill in":
                self._type(self._filled(block.text))
            case "stays":
                self._stay(block.text, shown)
            case "again":
                self._type_until(block.text, shown, where)
            case "":
                said = self._type(block.text)
                missing = lacks(said, shown)
                assert missing is None, f"{where}: {block.text} does not show {missing!r}:\n{said}"
            case _:
                raise AssertionError(f"{where}: nobody knows what ```sh {block.word} means")

    def _filled(self, text: str) -> str:
        names = re.findall(r"^(\w+)=", text, re.MULTILINE)
        assert len(names) == len(text.splitlines()), f"a reader fills in names alone: {text}"
        return "\n".join(f"{name}={self._fills_in[name]}" for name in names)

    def _type_until(self, text: str, shown: str, where: str) -> None:
        said = ""

        def shows() -> bool:
            nonlocal said
            done = self._run(text)
            said = done.stdout + done.stderr
            return done.returncode == 0 and lacks(done.stdout, shown) is None

        try:
            wait_for(f"{shown} in {where}", shows, seconds=60)
        except AssertionError as late:
            raise AssertionError(f"{where}: {text} never shows {lacks(said, shown)!r}:\n{said}") from late

    def _type(self, text: str) -> str:
        done = self._run(text)
        assert done.returncode == 0, f"{text}\nended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def _run(self, text: str) -> subprocess.CompletedProcess[str]:
        command = self._lab.command(self._host, ["bash", "-c", self._script(text, keeps=True)])
        return subprocess.run(
            command,
            cwd=self._home,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def _stay(self, text: str, shown: str) -> None:
        log = self._home / f"terminal-{len(self._terminals)}.log"
        with log.open("w") as into:
            # A separate group, as in a terminal: processes that the shell started end with it.
            terminal = self._lab.run(
                self._host,
                ["bash", "-c", self._script(text, keeps=False)],
                cwd=self._home,
                env=self._environment(),
                stdout=into,
                stderr=into,
                start_new_session=True,
            )
        self._terminals.append(terminal)

        def shows() -> bool:
            assert terminal.poll() is None, f"{text}\nended with {terminal.returncode}:\n{log.read_text()}"
            return lacks(log.read_text(), shown) is None

        wait_for(f"{shown or 'start'} of {text}", shows, seconds=60)

    def _script(self, text: str, *, keeps: bool) -> str:
        """Runs one block after the other, in their directory, and with the variables that they set."""
        kept = self._home / "names"
        before = f"set -ea; [ -f {kept} ] && . {kept}\n"
        return f"{before}{text}\n" + (f"export -p > {kept}\n" if keeps else "")

    def _environment(self) -> dict[str, str]:
        (self._home / "run").mkdir(exist_ok=True)
        kept = {name: os.environ[name] for name in os.environ if not name.startswith(("DOWNBURST_HUB", "XDG_"))}
        programs = f"{self._home / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        # Tables are as wide as their reader's terminal.
        own = {"HOME": str(self._home), "PWD": str(self._home), "COLUMNS": "250", "LC_ALL": "C.UTF-8"}
        return kept | own | {"PATH": programs, "XDG_RUNTIME_DIR": str(self._home / "run")}


def blocks(text: str) -> list[Block]:
    """The fenced blocks that stand at the beginning of their lines."""
    found = re.findall(r"^```([a-z]*) *([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(language, word.strip(), inside.strip("\n")) for language, word, inside in found]


def lacks(said: str, shown: str) -> str | None:
    """The first line of `shown` that `said` lacks behind those before it; None if it has them all."""
    lines = iter(map(_plain, said.splitlines()))
    for wanted in filter(None, map(_plain, shown.splitlines())):
        pattern = re.compile(".*".join(map(re.escape, wanted.split("…"))))
        if not any(pattern.search(line) for line in lines):
            return wanted
    return None


def _plain(line: str) -> str:
    return " ".join(line.split())


def part_of(text: str, heading: str | None, until: str | None) -> str:
    """The text before the heading `until`, if one is given, and of that the part below `heading`, if one is given."""
    if until is not None:
        text, there, _ = text.partition(f"\n## {until}\n")
        assert there, f"there is no part {until!r}"
    if heading is None:
        return text
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"there is no part {heading!r}"
    return found[1]
