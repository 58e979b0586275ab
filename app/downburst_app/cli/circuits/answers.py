"""Parts of the commands of circuits: their common options, and the text of the hub's answers."""

from typing import Annotated, Any

import typer

from downburst.foundation.rates import rate_text
from downburst_app.cli import completion
from downburst_app.cli.client import show

Number = Annotated[int, typer.Argument(help="Number of the circuit.", min=1, autocompletion=completion.circuits)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Dry run: only show the result.")]
By = Annotated[str, typer.Option(help="Name of the requester; stored with the circuit.")]


def dry(dry_run: bool) -> dict[str, Any]:  # noqa: FBT001
    """The parameters of a request that may be tried."""
    return {"dry_run": True} if dry_run else {}


def say(circuit: dict[str, Any], as_json: bool, dry_run: bool) -> None:  # noqa: FBT001
    """Prints a circuit as it is after a request, or as it would be."""
    if as_json:
        show(circuit)
    else:
        print(f"dry run, nothing was changed: {sentence(circuit)}" if dry_run else sentence(circuit))


def sentence(circuit: dict[str, Any]) -> str:
    """A circuit in a line."""
    name = f"circuit {circuit['circuit']}" if circuit["circuit"] else "a circuit"
    rates = f"{rate_text(circuit['rate_out_bps'])} out, {rate_text(circuit['rate_in_bps'])} in"
    why = f" ({circuit['reason']})" if circuit["reason"] else ""
    return f"{name} {between(circuit)}: {circuit['state']}{why}; {rates}, {_window(circuit)}"


def between(circuit: dict[str, Any]) -> str:
    """The sites that it joins."""
    near, sites = circuit["ends"][0]["site"], circuit["sites"]
    return f"to {', '.join(sites)}" if near is None else f"from {near} to {', '.join(sites[1:])}"


def second(moment: str) -> str:
    """A time to the second, in a form that other commands accept."""
    return moment[:19] + "Z" if moment.endswith("Z") else moment


def _window(circuit: dict[str, Any]) -> str:
    return f"{second(circuit['begin'])} to {second(circuit['end']) if circuit['end'] else 'cancellation'}"
