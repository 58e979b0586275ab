"""`downburst drill`: a test of a backup, by a hub restored from it."""

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downburst_app.cli.client import AsJson, show
from downburst_app.cli.hub.processes import SettingsFile, chosen_settings
from downburst_app.cli.numbers import A_DAY_S, real_number

if TYPE_CHECKING:
    from downburst_app.drill.report import Report


def drill(
    file: Annotated[Path, typer.Argument(help="The backup.")],
    *,
    settings: SettingsFile = None,
    keep: Annotated[
        Path | None, typer.Option(help="Restore into this directory and keep it; it contains the authority's key.")
    ] = None,
    patience: Annotated[float, real_number(least=1, most=A_DAY_S, help="Time-out of each step, in seconds.")] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Test a backup: restore it elsewhere, compare every row and file, start a hub on it, and serve a new site.

    The running hub is not affected. The copy contacts no other machine: it listens on loopback addresses only,
    without alarm receivers, other hubs, LDMs and circuits. Exits with 0 only if every check passes.

    Example: downburst drill /backups/hub.dbb
    """
    from downburst_app.drill.drill import drill as run_drill
    from downburst_app.wiring.hub import node_binary

    logging.getLogger("alembic").setLevel(logging.WARNING)
    node = node_binary(chosen_settings(settings))
    report = asyncio.run(run_drill(file, node=node, keep=keep, patience_s=patience))
    show(report.as_json()) if as_json else _tell(report)
    if not report.good:
        raise typer.Exit(1)


def _tell(report: "Report") -> None:
    for finding in report.findings:
        print(f"{'good' if finding.good else 'BAD':4} {finding.about:24} {finding.sentence}")
    verdict = "restores to a working hub" if report.good else "does NOT restore to a working hub"
    print(f"{report.backup} (hub {report.hub!r} as of {report.made_at}) {verdict}; {report.seconds} s")
