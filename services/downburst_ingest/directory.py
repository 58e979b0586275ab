"""A watched directory as a source of products.

A file is taken when it is complete: renamed into place, or closed by its writer. Names that begin with ``.`` or
end in ``.tmp`` or ``.part`` are left alone. A taken file is first moved to ``.taken/``, so that its writer can't
replace it while it is read; when the hub stops in between, the next start takes it from there, and the feed's
duplicate key drops it if it had been stored already. After the acknowledgement the file moves to ``done/`` or is
removed; a file that can't become a product moves to ``failed/`` beside a ``.reason.txt`` with the reason. A file
that fails due to the hub's own state (the node restarts, the disk is full) is tried again until it succeeds.
"""

import asyncio
import os
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Protocol

from downburst.domain.products import Acknowledgement, Product
from downburst.foundation.errors import DownburstError, NotWritable
from downburst.supervision import attempt, side_by_side
from downburst_ingest.inotify import CompleteFiles
from downburst_ingest.rules import PathRules


class Ingest(Protocol):
    """Hands a complete file to the node and waits for its acknowledgement."""

    async def __call__(self, path: Path, product: Product, *, remove: bool) -> Acknowledgement:
        """Stores the bytes of `path` as `product`; the node unlinks the file only with `remove`."""


class AfterIngest(StrEnum):
    """The treatment of a file after its product is stored."""

    MOVE = "move"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class DirectoryCounts:
    """The source's counts since its start."""

    stored: int = 0
    duplicates: int = 0
    failed: int = 0


class DirectorySource:
    """Feeds the files of one directory tree to `ingest`, at most `concurrency` at a time."""

    def __init__(
        self,
        directory: Path,
        ingest: Ingest,
        *,
        rules: PathRules | None = None,
        after: AfterIngest = AfterIngest.MOVE,
        concurrency: int = 4,
        on_fault: Callable[[str], None] = lambda _sentence: None,
    ) -> None:
        self._directory = directory
        self._ingest = ingest
        self._rules = rules or PathRules()
        self._after = after
        self._concurrency = concurrency
        self._on_fault = on_fault
        self._stored = self._duplicates = self._failed = 0

    @property
    def counts(self) -> DirectoryCounts:
        """The outcomes of files so far."""
        return DirectoryCounts(self._stored, self._duplicates, self._failed)

    async def run(self) -> None:
        """Takes files until cancelled. Files taken and not acknowledged are processed by the next run."""
        self._prepare()
        waiting: asyncio.Queue[_Taken] = asyncio.Queue(maxsize=4 * self._concurrency)
        servers = (self._serve(waiting) for _ in range(self._concurrency))
        await side_by_side(self._find(waiting), *servers)

    async def _find(self, waiting: "asyncio.Queue[_Taken]") -> None:
        async with aclosing(self._take_files()) as files:
            async for taken in files:
                await waiting.put(taken)

    def _prepare(self) -> None:
        for part in (DONE, FAILED, TAKEN):
            try:
                _make_readable(self._directory / part)
            except OSError as error:
                raise NotWritable(
                    f"the watched directory {self._directory} can't be used ({error.strerror}); "
                    "create it and let the hub's user write to it, or name another one"
                ) from error

    async def _take_files(self) -> "AsyncGenerator[_Taken, None]":
        for left_over in sorted(path for path in (self._directory / TAKEN).glob("*/**/*") if path.is_file()):
            relative = left_over.relative_to(self._directory / TAKEN)
            yield _Taken(left_over, Path(*relative.parts[1:]))
        files = CompleteFiles(self._directory, ignored=is_ignored)
        try:
            async for path in files:
                taken = self._take(path)
                if taken is not None:
                    yield taken
        finally:
            files.close()

    def _take(self, path: Path) -> "_Taken | None":
        relative = path.relative_to(self._directory)
        if path.is_symlink() or not path.is_file():
            return None
        target = self._directory / TAKEN / uuid.uuid4().hex[:12] / relative
        try:
            _move(path, target)
        except FileNotFoundError:
            _remove_empty_parents(target, up_to=self._directory / TAKEN)
            return None
        except OSError as error:
            self._on_fault(
                f"the file {path} can't be taken ({error.strerror}); give the hub's user permission to move it"
            )
            return None
        return _Taken(target, relative)

    async def _serve(self, waiting: "asyncio.Queue[_Taken]") -> None:
        while True:
            taken = await waiting.get()
            await attempt("ingest.file", partial(self._serve_one, taken), what=f"the file {taken.relative}")

    async def _serve_one(self, taken: "_Taken") -> None:
        try:
            await self._store(taken)
        except DownburstError as error:
            self._fail(taken, error.sentence)
        except (OSError, UnicodeError) as error:
            self._fail(taken, f"{taken.relative} could not be handled ({error}); check the file and drop it again")

    async def _store(self, taken: "_Taken") -> None:
        product = self._rules.product_of(_text(taken.relative))
        acknowledgement = await self._until_answered(taken, product)
        if acknowledgement.duplicate_of is None:
            self._stored += 1
        else:
            self._duplicates += 1
        if self._after is AfterIngest.REMOVE:
            taken.path.unlink(missing_ok=True)
        else:
            _move(taken.path, _free_name(self._directory / DONE / taken.relative))
        _remove_empty_parents(taken.path, up_to=self._directory / TAKEN)

    async def _until_answered(self, taken: "_Taken", product: Product) -> Acknowledgement:
        wait_s = FIRST_RETRY_S
        while True:
            try:
                return await self._ingest(taken.path, product, remove=False)
            except DownburstError as error:
                if error.status < 500 or not taken.path.exists():
                    raise
                if wait_s == FIRST_RETRY_S:
                    self._on_fault(f"{taken.relative} is waiting to be stored: {error.sentence}")
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_RETRY_S)

    def _fail(self, taken: "_Taken", sentence: str) -> None:
        self._failed += 1
        self._on_fault(f"the dropped file {taken.relative} did not become a product: {sentence}")
        target = _free_name(self._directory / FAILED / taken.relative)
        with suppress(FileNotFoundError):
            _move(taken.path, target)
            target.with_name(_bounded(target.name, ".reason.txt")).write_text(sentence + "\n", encoding="utf-8")
        _remove_empty_parents(taken.path, up_to=self._directory / TAKEN)


def is_ignored(relative: Path) -> bool:
    """True if the source ignores a path below the watched directory."""
    name = relative.name
    return name.startswith(".") or name.endswith((".tmp", ".part")) or relative in _OWN_DIRECTORIES


@dataclass(frozen=True, slots=True)
class _Taken:
    path: Path
    relative: Path
    """The file's original path below the watched directory."""


def _text(relative: Path) -> str:
    """The path as text; a name not in UTF-8 keeps surrogates, which the check of ids refuses with a sentence."""
    return os.fsdecode(os.fsencode(relative))


def _move(source: Path, target: Path) -> None:
    _make_readable(target.parent)
    source.rename(target)


def _make_readable(wanted: Path) -> None:
    """Gives a directory the readers of its parent, whatever umask the hub uses elsewhere."""
    if not wanted.is_dir():
        _make_readable(wanted.parent)
        wanted.mkdir(exist_ok=True)
        wanted.chmod(wanted.parent.stat().st_mode & 0o755)


def _free_name(wanted: Path) -> Path:
    """`wanted`, or the first of wanted.2, wanted.3 ... that is free."""
    candidate, number = wanted, 2
    while candidate.exists():
        candidate = wanted.with_name(_bounded(wanted.name, f".{number}"))
        number += 1
    return candidate


def _bounded(name: str, suffix: str) -> str:
    """`name` and `suffix`, cut so that the whole stays within the 255 bytes of a file name."""
    room = 255 - len(suffix)
    return os.fsdecode(os.fsencode(name)[:room]) + suffix


def _remove_empty_parents(path: Path, *, up_to: Path) -> None:
    for parent in path.parents:
        if parent == up_to:
            return
        with suppress(OSError):
            parent.rmdir()


DONE = "done"
FAILED = "failed"
TAKEN = ".taken"
FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 30.0
_OWN_DIRECTORIES = frozenset({Path(DONE), Path(FAILED)})
