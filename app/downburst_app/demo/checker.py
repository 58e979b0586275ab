"""Compares sites' files with the played products, from the files alone, without receipts, ledger or log."""

import hashlib
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from downburst.foundation.file_names import FileNameError, decode
from downburst_app.demo.scene import SiteSpec
from downburst_app.play.player import Sent

Key = tuple[str, str]
"""Feed and product id, which together name a product of one demonstration."""


@dataclass(frozen=True, slots=True)
class Played:
    """A product's feed and size, and when it began to be sent (seconds since 1970)."""

    feed: str
    size_bytes: int
    at_s: float


class PlayRecord:
    """The record of sent products, written line by line to a file before the first byte of each is sent."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8", buffering=1)
        self._sent: dict[Key, Sent] = {}
        self.played: list[Played] = []

    def add(self, sent: Sent) -> None:
        """Records a product; refuses a repeated id, which the check could not tell apart."""
        key = (sent.feed, sent.product_id)
        if key in self._sent:
            raise ValueError(f"{key} is played twice; a demonstration gives each product an id of its own")
        self._sent[key] = sent
        self.played.append(Played(sent.feed, sent.size_bytes, time.time()))
        line = {"feed": sent.feed, "id": sent.product_id, "size": sent.size_bytes, "sha256": sent.sha256}
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def close(self) -> None:
        """Ends the file."""
        self._file.close()

    @property
    def sent(self) -> Sequence[Sent]:
        """All recorded products, in order."""
        return list(self._sent.values())


@dataclass(frozen=True, slots=True)
class SiteVerdict:
    """A site's files, compared with the expected ones."""

    site: str
    expected: int
    expected_bytes: int
    stored: int
    """Expected products present with equal bytes."""
    missing: tuple[Key, ...] = ()
    duplicates: tuple[Key, ...] = ()
    """One entry for each file beyond the first of a product."""
    mismatched: tuple[Key, ...] = ()
    """Products with different bytes, and files that were never played or not subscribed."""
    strays: tuple[str, ...] = ()
    """Files with a name that no site writes."""

    @property
    def good(self) -> bool:
        """True if everything is there, once, with equal bytes, and nothing else."""
        return not (self.missing or self.duplicates or self.mismatched or self.strays)

    def complaint(self) -> str:
        """The faults in one sentence."""
        kinds = {"missing": self.missing, "doubled": self.duplicates, "different": self.mismatched}
        parts = [f"{len(found)} {kind} ({_shown(found)})" for kind, found in kinds.items() if found]
        if self.strays:
            parts.append(f"{len(self.strays)} files with foreign names ({self.strays[0]!r})")
        return f"{self.site}: {'; '.join(parts) or 'all good'}"


def expected_at(site: SiteSpec, sent: Iterable[Sent]) -> dict[Key, Sent]:
    """The products within the site's subscriptions."""
    wishes = [
        (wish.feed, re.compile(wish.pattern), re.compile(wish.not_pattern) if wish.not_pattern else None)
        for wish in site.subscriptions
    ]
    return {
        (product.feed, product.product_id): product
        for product in sent
        if any(
            feed == product.feed
            and pattern.search(product.product_id)
            and not (excluded and excluded.search(product.product_id))
            for feed, pattern, excluded in wishes
        )
    }


def check_site(site: SiteSpec, received: Path, sent: Iterable[Sent]) -> SiteVerdict:
    """Reads and hashes every file below `received` and compares."""
    expected = expected_at(site, sent)
    found = _Found()
    with ThreadPoolExecutor(max_workers=4) as pool:
        paths = sorted(received_files(received))
        for path, sha256 in zip(paths, pool.map(lambda name: _sha256(received / name), paths), strict=True):
            found.add(path, sha256)
    equal = {key for key, product in expected.items() if product.sha256 in found.digests.get(key, ())}
    wrong = [
        key for key, digests in found.digests.items() for digest in digests if not _is(expected.get(key), digest)
    ]
    return SiteVerdict(
        site=site.name,
        expected=len(expected),
        expected_bytes=sum(product.size_bytes for product in expected.values()),
        stored=len(equal),
        missing=tuple(key for key in expected if key not in found.digests),
        duplicates=tuple(key for key, files in found.files.items() for _ in range(files - 1)),
        mismatched=tuple(wrong),
        strays=tuple(found.strays),
    )


def check_all(sites: Iterable[SiteSpec], directories: Mapping[str, Path], sent: Sequence[Sent]) -> list[SiteVerdict]:
    """The verdict on each site; `directories` holds each site's received files."""
    return [check_site(site, directories[site.name], sent) for site in sites]


def received_files(received: Path) -> Iterator[str]:
    """Paths, relative to `received`, of all files except those in progress, which have hidden names."""
    for path in received.rglob("*"):
        relative = path.relative_to(received)
        if path.is_file() and not any(part.startswith(".") for part in relative.parts):
            yield relative.as_posix()


@dataclass(slots=True)
class _Found:
    digests: dict[Key, set[str]] = field(default_factory=lambda: defaultdict(set))
    files: Counter[Key] = field(default_factory=Counter)
    strays: list[str] = field(default_factory=list)

    def add(self, path: str, sha256: str) -> None:
        try:
            name = decode(path)
        except FileNameError:
            self.strays.append(path)
            return
        key = (name.feed, name.product_id)
        self.digests[key].add(sha256)
        self.files[key] += 1


def _is(product: Sent | None, sha256: str) -> bool:
    return product is not None and product.sha256 == sha256


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _shown(keys: Sequence[Key]) -> str:
    first = ", ".join(f"{feed}: {product_id}" for feed, product_id in keys[:3])
    return first if len(keys) <= 3 else f"{first} ..."
