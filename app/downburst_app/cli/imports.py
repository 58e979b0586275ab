"""`downburst import`: configurations of other systems, converted; the hub is not changed."""

import typer

from downburst_app.cli.bridges.importing import import_wis2
from downburst_app.cli.ldm.importing import import_ldm

app = typer.Typer(help="Import the configuration of another system; the hub is not changed.", no_args_is_help=True)


@app.callback()
def _import() -> None:
    """Import the configuration of another system; the hub is not changed."""


app.command("ldm")(import_ldm)
app.command("wis2")(import_wis2)
