"""`downburst measurements`: results of perfSONAR's test points, and tasks for them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from downburst.domain.measurements import MeasuredKind, Unit
from downburst.foundation.errors import BadInput
from downburst.foundation.rates import rate_text
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, minute, show, table
from downburst_app.cli.columns import Further, Wide
from downburst_measurements.tasks import Task

app = typer.Typer(help="Results of perfSONAR test points, and tasks for them.", no_args_is_help=True)
points = typer.Typer(help="List, add and remove test points.", no_args_is_help=True)
app.add_typer(points, name="points")
Point = Annotated[
    str, typer.Argument(help="Name of the test point, for example unl.", autocompletion=completion.points)
]
Server = Annotated[str, typer.Argument(help="Its pScheduler: https://ps.example.edu/pscheduler.")]
User = Annotated[str | None, typer.Option(help="User at the pScheduler; needs --password-file.")]
Password = Annotated[Path | None, typer.Option(help="File with that user's password.")]
Authority = Annotated[Path | None, typer.Option(help="File with the authority of its certificate (PEM).")]


@app.command("list")
def list_measurements(
    *,
    site: Annotated[
        str | None, typer.Option(help="Only those with an end at this site.", autocompletion=completion.sites)
    ] = None,
    point: Annotated[
        str | None, typer.Option(help="Only those of this test point.", autocompletion=completion.points)
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The most that are shown.")] = 50,
    wide: Wide = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """List the newest results, with those that were refused.

    Example: downburst measurements list --site unl.edu
    """
    if site is not None and point is not None:
        raise BadInput("--site and --point exclude each other")
    path = ("v1", "measurements") if site is None else ("v1", "sites", site, "measurements")
    found = HubClient(hub).ask("GET", *path, params=given(limit=limit, point=point))
    if as_json:
        show(found)
        return
    table(
        "measurements",
        ("at", "kind", Further("from"), Further("to"), "figure", "lost", "test point", "note"),
        map(_row, found),
        wide=wide,
        empty="there are no measurements; add a test point: downburst measurements points add --help",
    )


@points.command("list")
def list_points(*, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the test points.

    Example: downburst measurements points list
    """
    found = HubClient(hub).ask("GET", "v1", "test-points")
    if as_json:
        show(found)
        return
    table(
        "test points",
        ("test point", "site", "addresses"),
        ([one["point"], one["site"] or "", ", ".join(one["addresses"])] for one in found),
        empty="there are no test points; add one: downburst measurements points add unl ps.unl.edu --site unl.edu",
    )


@points.command("add")
def add_point(
    point: Point,
    addresses: Annotated[list[str], typer.Argument(help="Names and addresses of the host, as results name it.")],
    *,
    site: Annotated[str | None, typer.Option(help="The site at which it stands; left out: none.")] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="Write its token to this file, which must not exist.")
    ] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Add a test point. Its token is shown this once; `downburst measurements task` needs it.

    Example: downburst measurements points add unl ps.unl.edu 192.0.2.7 --site unl.edu --token-file unl.token
    """
    if token_file is not None and token_file.exists():
        raise BadInput(f"{token_file} exists already; name another file")
    body = given(point=point, addresses=addresses, site=site)
    made = HubClient(hub).ask("POST", "v1", "test-points", json=body)
    if token_file is not None:
        token_file.touch(mode=0o600)
        token_file.write_text(made["token"] + "\n")
    if as_json:
        show(made)
        return
    kept = f"in {token_file}" if token_file is not None else made["token"]
    print(
        f"test point {point}: token {kept}; its archiver posts to HUB{made['archive_path'].rpartition('/')[0]}/TOKEN"
    )


@points.command("remove")
def remove_point(point: Point, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Remove a test point with its measurements; its token is no longer taken.

    Example: downburst measurements points remove unl
    """
    HubClient(hub).ask("DELETE", "v1", "test-points", point)
    show({"removed": point}) if as_json else print(f"test point {point} removed")


@app.command("task")
def add_task(  # noqa: PLR0913
    server: Server,
    kind: Annotated[MeasuredKind, typer.Argument(help="The test.")],
    source: Annotated[str, typer.Option("--from", help="The host that sends; a test point.")],
    destination: Annotated[str, typer.Option("--to", help="The host that receives.")],
    archive: Annotated[str, typer.Option(help="This hub as the test point reaches it: https://hub.example.edu.")],
    token_file: Annotated[Path, typer.Option(help="File with the test point's token.")],
    *,
    repeat_minutes: Annotated[int, typer.Option(min=0, max=10_080, help="Minutes between runs; 0: one run.")] = 15,
    until: Annotated[str | None, typer.Option(help="End of the repetitions, ISO 8601.")] = None,
    seconds: Annotated[int, typer.Option(min=1, max=86_400, help="Of a run of throughput, or of latencybg.")] = 10,
    packets: Annotated[int, typer.Option(min=1, max=10_000, help="Of a run of latency or rtt.")] = 100,
    insecure_archive: Annotated[
        bool, typer.Option(help="The test point does not check this hub's certificate.")
    ] = False,
    user: User = None,
    password_file: Password = None,
    ca_file: Authority = None,
) -> None:
    """Give a test point a task whose results come to this hub. It runs there until it is ended.

    Example: downburst measurements task https://ps.unl.edu/pscheduler latency --from ps.unl.edu --to ps.example.edu
    --archive https://hub.example.edu --token-file unl.token
    """
    from downburst_measurements.pscheduler import PScheduler

    token = _secret(token_file)
    task = Task(
        kind,
        source,
        destination,
        f"{archive.rstrip('/')}/v1/measurements/archive/{token}",
        repeat_s=repeat_minutes * 60 or None,
        until=until,
        duration_s=seconds,
        packets=packets,
        verify_tls=not insecure_archive,
    )
    with PScheduler(server, login=_login(user, password_file), ca_file=ca_file) as scheduler:
        print(scheduler.add(task))


@app.command("runs")
def list_runs(
    server: Server,
    task: Annotated[str, typer.Argument(help="The task's address, as `task` printed it.")],
    *,
    limit: Annotated[int, typer.Option(min=1, max=100, help="The most that are shown.")] = 10,
    user: User = None,
    password_file: Password = None,
    ca_file: Authority = None,
) -> None:
    """List the runs of a task with their states.

    Example: downburst measurements runs https://ps.unl.edu/pscheduler https://ps.unl.edu/pscheduler/tasks/UUID
    """
    from downburst_measurements.pscheduler import PScheduler

    with PScheduler(server, login=_login(user, password_file), ca_file=ca_file) as scheduler:
        found = scheduler.runs(task, limit=limit)
    rows = ([one.starts, one.state, one.error] for one in found)
    table("runs", ("start", "state", "error"), rows, empty="no run is on the schedule yet")


@app.command("end-task")
def end_task(
    server: Server,
    task: Annotated[str, typer.Argument(help="The task's address, as `task` printed it.")],
    *,
    user: User = None,
    password_file: Password = None,
    ca_file: Authority = None,
) -> None:
    """End a task at its test point: no further run begins.

    Example: downburst measurements end-task https://ps.unl.edu/pscheduler https://ps.unl.edu/pscheduler/tasks/UUID
    """
    from downburst_measurements.pscheduler import PScheduler

    with PScheduler(server, login=_login(user, password_file), ca_file=ca_file) as scheduler:
        scheduler.end(task)
    print(f"the task {task} has ended")


def figure_text(figure: dict[str, Any]) -> str:
    """A figure with its error, if that is known."""
    value, error = figure["value"], figure["error"]
    if figure["unit"] == Unit.BITS_PER_SECOND:
        return rate_text(value)
    beside = "error not known" if error is None else f"+/- {error / 1e3:.3f} ms"
    return f"{value / 1e3:.3f} ms, {beside}" if error != 0 else f"{value / 1e3:.3f} ms"


def _row(one: dict[str, Any]) -> list[str]:
    figure = one["figure"]
    lost = None if figure is None else figure["lost_share"]
    return [
        minute(one["at"]),
        one["kind"],
        _end(one["source"], one["source_site"]),
        _end(one["destination"], one["destination_site"]),
        "none" if figure is None else figure_text(figure),
        "" if lost is None else f"{lost:.2%}",
        one["point"],
        one["refused"] if figure is None else figure["note"],
    ]


def _end(host: str, site: str | None) -> str:
    return f"{host or 'not named'} ({site})" if site else host or "not named"


def _login(user: str | None, password_file: Path | None) -> tuple[str, str] | None:
    if (user is None) != (password_file is None):
        raise BadInput("--user and --password-file belong together; give both or neither")
    return None if user is None or password_file is None else (user, _secret(password_file))


def _secret(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} can't be read: {error}") from None
