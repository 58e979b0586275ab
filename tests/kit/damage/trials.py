"""The behaviour of a hub and its site with damaged files: a start, a new product for every feed, and the reports."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from downburst.foundation.file_names import decode
from kit.damage.injuries import INJURIES
from kit.damage.scene import FEEDS, START_S, Pair
from kit.patience import wait_for


@dataclass(frozen=True)
class Harm:
    """One file and its damage; `path` is relative to the directory of the hub or site."""

    place: str
    path: str
    injury: str

    def __str__(self) -> str:
        return f"{self.place}:{self.path} {self.injury}"

    @property
    def feed(self) -> str | None:
        """The feed that the file is about."""
        found = re.search(r"(?:^|/)(FEED\d+)(?=[/.]|$)", self.path)
        return found[1] if found else None


@dataclass
class Verdict:
    """The result of a trial: an outcome and a report for each harm, and the faults."""

    outcomes: dict[Harm, str] = field(default_factory=dict)
    words: dict[Harm, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    start_s: float = 0.0


def tried(snapshot: Pair, home: Path, harms: Sequence[Harm], expected: Mapping[Harm, str] | None = None) -> Verdict:
    """Damages a copy, starts it and judges; one harm alone may keep it from starting.

    The trial waits for `expected` reports and new files: the scrub reports some files, and rows of counters are
    written a second after the start.
    """
    pair = snapshot.copied_to(home)
    damaged = {harm: _injure(pair, harm) for harm in harms}
    verdict = Verdict()
    began = time.monotonic()
    refused = None if pair.try_hub() else pair.hub.log()
    verdict.start_s = time.monotonic() - began
    if refused is None:
        pair.site.start()
        refused = _told_refusal(pair) if _is_of_site_identity(harms) else None
    if refused is None:
        verdict.wrong += _use(pair, harms)
        with suppress(AssertionError):
            wait_for("all that is expected", lambda: _is_settled(pair, damaged, expected or {}), START_S)
    verdict.wrong += pair.stop()
    for harm in harms:
        words = refused or _words(pair, harm)
        verdict.words[harm] = words.strip().splitlines()[-1] if words else ""
        verdict.outcomes[harm] = (
            "refused"
            if refused
            else "reported"
            if words
            else "rebuilt"
            if _is_rebuilt(pair, harm, damaged)
            else "healthy"
        )
    if refused is not None:
        verdict.wrong += _wrong_in_refusal(pair, harms, refused)
    said = [*pair.hub.log().splitlines(), *pair.site.log().splitlines()]
    verdict.wrong += [line for line in said if re.search(r"Traceback|panicked|RUST_BACKTRACE", line)]
    if verdict.start_s > START_S:
        verdict.wrong.append(f"the start took {verdict.start_s:.0f} s")
    return verdict


def _injure(pair: Pair, harm: Harm) -> bytes | None:
    path = pair.directory(harm.place) / harm.path
    INJURIES[harm.injury](path)
    return _content(pair, harm)


def _content(pair: Pair, harm: Harm) -> bytes | None:
    path = pair.directory(harm.place) / harm.path
    return path.read_bytes() if path.is_file() else None


def _is_of_site_identity(harms: Sequence[Harm]) -> bool:
    return any(harm.path.endswith("identity.json") for harm in harms)


def _told_refusal(pair: Pair) -> str | None:
    """A site whose credential is damaged ends by itself."""
    wait_for("the end of the site", lambda: pair.site.process.poll() is not None, START_S)
    return pair.site.log() if pair.site.process.returncode else None


def _is_settled(pair: Pair, damaged: Mapping[Harm, bytes | None], expected: Mapping[Harm, str]) -> bool:
    return all(
        "healthy" in outcome
        or ("reported" in outcome and bool(_words(pair, harm)))
        or ("rebuilt" in outcome and _is_rebuilt(pair, harm, damaged))
        for harm, outcome in expected.items()
    )


def _is_rebuilt(pair: Pair, harm: Harm, damaged: Mapping[Harm, bytes | None]) -> bool:
    return _content(pair, harm) not in (damaged[harm], None)


def _use(pair: Pair, harms: Sequence[Harm]) -> list[str]:
    """New products of every feed arrive; earlier ones are there, or are reported as lost."""
    before = set(pair.acknowledged)
    for feed in FEEDS:
        pair.put(feed, "after-good")
    new = set(pair.acknowledged) - before
    began = time.monotonic()

    def lacking() -> set[tuple[str, str]]:
        """Excludes products that the hub reports as lost, and files that belong to local software."""
        missing = pair.missing()
        names = [decode(harm.path.removeprefix("received/")) for harm in harms if harm.path.startswith("received/")]
        local = {(name.feed, name.product_id) for name in names}
        lost = {harm.feed for harm in harms if _is_of_hubs_log(harm) and _words(pair, harm)}
        return {key for key in missing - local if key in new or key[0] not in lost}

    try:
        wait_for("new products", lambda: not lacking(), START_S)
    except AssertionError:
        return [f"after {time.monotonic() - began:.0f} s the site lacks, and nobody says so: {sorted(lacking())}"]
    return []


def _is_of_hubs_log(harm: Harm) -> bool:
    return harm.place == "hub" and harm.path.startswith("node/log/")


def _words(pair: Pair, harm: Harm) -> str:
    """The first line that is about a harm."""
    lines = (pair.hub if harm.place == "hub" else pair.site).log().splitlines()
    return next((line for line in lines if _is_about(line, harm)), "")


def _is_about(line: str, harm: Harm) -> bool:
    """A line that names the file; for a file of a log, its feed and a word for damage suffice."""
    path = Path(harm.path)
    names = [f"{'data' if harm.place == 'hub' else 'site'}/{harm.path}"]
    if harm.feed is None and "/" in harm.path and len(path.name) > SHORTEST_NAME:
        # Reports name a letter by its name without an ending.
        names.append(path.name.removesuffix(".json"))
    if any(name in line for name in names):
        return True
    is_of_log = "log/" in harm.path and (
        path.suffix in (".segment", ".index") or path.name in ("identity", "sequence")
    )
    return bool(is_of_log and re.search(rf'feed(="| ){harm.feed}\b', line) and _LOST.search(line))


def _wrong_in_refusal(pair: Pair, harms: Sequence[Harm], refused: str) -> Iterator[str]:
    lines = refused.strip().splitlines()
    sentence = lines[-1] if lines else ""
    if len(harms) != 1:
        yield f"{len(harms)} harms at once, and the start was refused: {sentence}"
        return
    name = Path(harms[0].path).name
    # A site without a credential shows its token, which was used.
    if (name not in sentence and harms[0].injury != "removed") or ";" not in sentence:
        yield f"the refusal does not name {name} and what to do: {sentence}"
    code = pair.site.process.returncode if harms[0].place == "site" else pair.hub.process.returncode
    if not code:
        yield f"it refuses and ends with {code}"


_LOST = re.compile(r"damaged|repaired|missing|lost|set aside|can't be read|can not be read|gone")
SHORTEST_NAME = 7
