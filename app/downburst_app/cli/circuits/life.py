"""Commands for the life of a circuit: commit a hold, create and tear down its path, override its state."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli.circuits.answers import By, DryRun, Number, dry, say
from downburst_app.cli.client import AsJson, HubAddress, HubClient, Yes, confirm, given


class Shown(StrEnum):
    """The states of an override."""

    ACTIVE = "active"
    DOWN = "down"
    CLEAR = "clear"
    """The probes decide again."""


State = Annotated[
    Shown, typer.Argument(help="down: feeds leave it; active: a shortfall is hidden; clear: its probes decide again.")
]
Reason = Annotated[str | None, typer.Option(help="Reason, which others see; required but for clear.")]


def commit(
    number: Number,
    *,
    by: By = "operator",
    dry_run: DryRun = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Make a held circuit a reservation, before its hold is over.

    Example: downburst circuits commit 17
    """
    say(_moved(hub, number, "commit", by, dry_run), as_json, dry_run)


def create_path(
    number: Number,
    *,
    by: By = "operator",
    dry_run: DryRun = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Have the path of a waiting circuit set up.

    Example: downburst circuits create-path 17
    """
    say(_moved(hub, number, "create-path", by, dry_run), as_json, dry_run)


def tear_down_path(
    number: Number,
    *,
    by: By = "operator",
    dry_run: DryRun = False,
    yes: Yes = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Remove the path of a circuit; the circuit stays reserved, and its feeds use the routed path.

    Example: downburst circuits tear-down-path 17
    """
    confirm(f"Tear down the path of circuit {number}? Its feeds use the routed path.", yes=yes or dry_run)
    say(_moved(hub, number, "tear-down-path", by, dry_run), as_json, dry_run)


def override(  # noqa: PLR0913
    number: Number,
    state: State,
    *,
    reason: Reason = None,
    by: By = "operator",
    dry_run: DryRun = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Show a circuit as active or down whatever its probes say; administrators only.

    Feeds leave a circuit that is overridden as down. They never use one that its probes refuse.

    Example: downburst circuits override 17 down --reason "its switch is replaced"
    """
    body = given(reason=reason) | {"state": None if state is Shown.CLEAR else state, "by": by}
    client = HubClient(hub)
    circuit = client.ask("POST", "v1", "circuits", str(number), "override", json=body, params=dry(dry_run))
    say(circuit, as_json, dry_run)


def _moved(hub: str, number: int, act: str, by: str, dry_run: bool) -> dict[str, Any]:  # noqa: FBT001
    params = dry(dry_run) | {"by": by}
    circuit: dict[str, Any] = HubClient(hub).ask("POST", "v1", "circuits", str(number), act, params=params)
    return circuit
