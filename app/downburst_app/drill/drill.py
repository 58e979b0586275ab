"""Restores a backup into a directory of its own, compares it, starts a hub on it, and serves a site."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from downburst.foundation.clock import SystemClock
from downburst.foundation.errors import BadInput, Failure, NotWritable
from downburst.ledger.storage.dump import silence_receivers
from downburst.settings.hub import Settings
from downburst_app.backup import back_up, inspect, restore
from downburst_app.drill.comparing import compare
from downburst_app.drill.report import Finding, Report
from downburst_app.drill.trial import Trial


async def drill(
    backup: Path,
    *,
    node: Path,
    keep: Path | None = None,
    patience_s: float = 60.0,
) -> Report:
    """A drill of one backup; raises faults of the file itself. All processes are ended in every case.

    The copy listens on loopback addresses only and contacts no other machine: receivers of alarms, other hubs, LDMs
    and circuits are removed from it after the comparison. Waits at most `patience_s` seconds for each slow step.
    """
    began_s = time.monotonic()
    manifest = inspect(backup)
    with _place(keep) as place:
        # The environment may have settings of the running hub: none are taken from it.
        copy = Settings.model_construct(data_dir=place / "hub", name=manifest.hub)
        restore(copy, backup, migrated=False)
        again = place / "again.dbb"
        findings = list(compare(backup, manifest, again, back_up(copy, again, SystemClock())))
        silence_receivers(copy.url_of_ledger)
        try:
            trial = Trial(place, node, patience_s)
            async for finding in trial.run(backup, manifest):
                findings.append(finding)  # noqa: PERF401 - those before a failure count
        except Failure as error:
            findings.append(Finding("trial", good=False, sentence=error.sentence))
    return Report(str(backup), manifest.hub, manifest.made_at, round(time.monotonic() - began_s, 1), tuple(findings))


@contextmanager
def _place(keep: Path | None) -> Iterator[Path]:
    """A directory private to its owner, since it will hold the authority's key; removed unless it is to be kept."""
    if keep is None:
        place = Path(tempfile.mkdtemp(prefix="downburst-drill-")).absolute()
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)
        return
    place = keep.expanduser().absolute()
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NotWritable(f"{place} can't be made: {error.strerror}; give --keep another directory") from error
    if any(place.iterdir()):
        raise BadInput(f"{place} is not empty; give --keep a directory that is empty or does not exist")
    yield place
