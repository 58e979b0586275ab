"""The damaged files of each trial: all that the catalogue lists and the scene has, read from the disk."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kit.damage.injuries import INJURIES
from kit.damage.scene import Pair
from kit.damage.trials import Harm
from kit.stored_files import PLACES, Place, StoredFile, entry_of, stored_files

PLANTED: dict[Place, tuple[str, ...]] = {
    "hub": (
        "node/log/FEED0/sequence.aside",
        "node/log/FEED0/00000000000000000001.segment.quarantined",
        "node/log/FEED0/restored",
        "node/tls/ca.tmp",
        "node/.probe",
        "batches/half-of-one.tmp",
        "batches/figures-of-a-second.json",
        "batches/figures-of-another-second.bad",
        "spool/upload-of-before",
        ".writable",
        "ledger.sqlite.seal.tmp",
    ),
    "site": (
        "state/half.tmp",
        "state/token.sha256",
        "state/nodes.cbor",
        "spool/unproven/for-people",
        "spool/product-on-its-way",
        "failed/.half-of-a-letter",
    ),
}
"""Files that a crash may leave at a moment that no test meets, or another release."""


@dataclass(frozen=True)
class Subject:
    """A file of an entry of the catalogue, in one of the snapshots."""

    entry: StoredFile
    snapshot: str
    place: Place
    path: str

    def hurt(self, injury: str) -> Harm:
        """The file with its damage."""
        return Harm(self.place, self.path, injury)

    def expected(self, injury: str) -> str:
        """The outcome that the catalogue predicts: one, or two with `or` between them."""
        return self.entry.outcomes.get(injury) or self.entry.outcomes.get("any", "not said")

    @property
    def affects(self) -> str:
        """Two files that affect the same thing are not damaged in one trial, so that each outcome has its file."""
        if "ledger.sqlite" in self.path:
            return "ledger"
        # A damaged segment is set aside under the name of one that was before.
        harmless = self.entry.kind in ("lock", "transient", "output") and ".quarantined" not in self.path
        return (None if harmless else self.hurt("").feed) or f"{self.place}:{self.path}"


def plant(pair: Pair) -> None:
    """Leaves files as a crash may leave them."""
    for place, paths in PLANTED.items():
        for path in paths:
            planted = pair.directory(place) / path
            planted.parent.mkdir(parents=True, exist_ok=True)
            planted.write_bytes(b"" if planted.name in EMPTY_MARKS else b"half of what was to be written " * 9)


def subjects(snapshots: dict[str, Pair]) -> list[Subject]:
    """A file for each entry at each place, from the first snapshot that has one."""
    chosen: list[Subject] = []
    found = {name: list(_files(name, pair)) for name, pair in snapshots.items()}
    for entry in stored_files():
        if "elsewhere" in entry.outcomes:
            continue
        for place in PLACES:
            for candidates in found.values():
                wanted = [one for one in candidates if one.entry == entry and one.place == place]
                if wanted:
                    chosen.append(_apart(wanted, chosen))
                    break
    return chosen + _open_segments(found, chosen)


def rounds(
    subjects: Sequence[Subject], injuries: Iterable[str] = tuple(INJURIES)
) -> Iterator[list[tuple[Subject, str]]]:
    """Trials: each file that a start may refuse alone, all others together if outcomes can be distinguished."""
    for injury in injuries:
        together: list[list[Subject]] = []
        for one in subjects:
            # Without the ledger's log the hub does not remember the content of a feed's log.
            if "refused" in one.expected(injury) or one.path.endswith("-wal"):
                yield [(one, injury)]
                continue
            fitting = (round_ for round_ in together if _fits(one, round_))
            round_ = next(fitting, None)
            if round_ is None:
                together.append(round_ := [])
            round_.append(one)
        yield from ([(one, injury) for one in round_] for round_ in together)


def _fits(one: Subject, others: Sequence[Subject]) -> bool:
    return all(one.snapshot == other.snapshot and one.affects != other.affects for other in others)


def _files(snapshot: str, pair: Pair) -> Iterator[Subject]:
    for place in PLACES:
        home = pair.directory(place)
        for path in sorted(home.rglob("*")):
            relative = path.relative_to(home).as_posix()
            entry = entry_of(place, relative)
            if path.is_file() and not path.is_symlink() and entry is not None:
                yield Subject(entry, snapshot, place, relative)


def _apart(wanted: Sequence[Subject], chosen: Sequence[Subject]) -> Subject:
    taken = {one.affects for one in chosen if one.snapshot == wanted[0].snapshot}
    # The first feed has the letters and the planted files.
    return next((one for one in wanted[1:] if one.affects not in taken), wanted[-1])


def _open_segments(found: dict[str, list[Subject]], chosen: Sequence[Subject]) -> list[Subject]:
    """Segments that were open when the processes were killed, and so are in no index."""
    more: list[Subject] = []
    for place in PLACES:
        files = {one.path: one for one in found["killed"] if one.place == place}
        segments = [one for path, one in files.items() if path.endswith(".segment")]
        open_ones = [one for one in segments if str(Path(one.path).with_suffix(".index")) not in files]
        more.append(_apart(open_ones, [*chosen, *more]))
    return more


EMPTY_MARKS = ("restored", ".writable")
