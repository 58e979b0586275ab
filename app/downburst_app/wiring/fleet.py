"""The composition root of `downburst fleet`: senders as child processes or as pods, sized by the hub's traffic."""

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from socket import gethostname

from downburst.fleet import Fleet, FleetLoop
from downburst.fleet.children import ChildFleet, Command
from downburst.foundation.errors import BadSettings
from downburst.kafka.bus import KafkaBus
from downburst.ledger import Ledger
from downburst.settings.addresses import split_address
from downburst.settings.hub import Settings
from downburst.supervision import start
from downburst.supervision.remote_faults import start_telling
from downburst_app.wiring.process import cancelled, stopped_by_signals
from downburst_app.wiring.reports import FaultReports


async def serve_fleet(settings: Settings, file: Path | None = None) -> None:
    """Runs the senders of a hub until SIGTERM or SIGINT; child processes read the same settings file."""
    if settings.fleet.kind == "none":
        raise BadSettings("no fleet is configured; set fleet.kind = children or kubernetes")
    if settings.kafka.products == "here" or not settings.ledger_url.startswith("postgres"):
        raise BadSettings(
            "senders need feeds on Kafka (kafka.products = ingest) and a ledger in PostgreSQL (ledger_url)"
        )
    # Signals count from here on, also during waits for servers: the first process of a container has no default
    # handler.
    stop = start("fleet.stop", stopped_by_signals().wait())
    working = start("fleet.run", _keep_fleet(settings, file))
    await asyncio.wait((stop, working), return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        await working
    await cancelled(stop, working)


async def _keep_fleet(settings: Settings, file: Path | None) -> None:
    async with AsyncExitStack() as stack:
        bus = await KafkaBus(settings.kafka).open()
        stack.callback(bus.close)
        telling = start_telling(bus, f"fleet on {gethostname()}")
        stack.push_async_callback(cancelled, telling)
        ledger = Ledger.look_into(settings.url_of_ledger)
        stack.callback(ledger.close)
        fleet = fleet_of(settings, file)
        stack.push_async_callback(fleet.close)
        await FleetLoop(bus, fleet, settings.fleet, say=FaultReports(ledger, bus, _LOG).say).run()


def fleet_of(settings: Settings, file: Path | None) -> Fleet:
    """The fleet that the settings request; they may come from a file."""
    if settings.fleet.kind == "children":
        host = _host_for_sites(settings)
        patience_s = settings.sender.drain_s + STOP_S
        return ChildFleet(lambda number: sender_command(settings, file, host, number), drain_s=patience_s)
    # Imported only on use: it is large.
    from downburst.fleet.kubernetes import KubernetesFleet, client_here, manifest_of  # noqa: PLC0415

    if settings.fleet.manifest is None:
        raise BadSettings("a fleet in Kubernetes needs the workload of its senders (fleet.manifest)")
    client, namespace = client_here()
    return KubernetesFleet(
        client,
        manifest_of(settings.fleet.manifest),
        namespace=namespace,
        identity=f"{gethostname()}-{os.getpid()}",
        owner=settings.fleet.owner,
    )


def sender_command(settings: Settings, file: Path | None, host: str, number: int) -> Command:
    """The command of sender N on this machine: with ports, a name and a copy of the feeds of its own."""
    port = settings.fleet.first_port + 2 * number
    listens = split_address(settings.sites)[0]
    return Command(
        argv=(*_program(), "sender", *(("--settings", str(file)) if file else ())),
        environment={
            "DOWNBURST_DATA_DIR": str(settings.data_dir / f"sender-{number}"),
            # Not an argument: arguments are visible to all users of the machine.
            "DOWNBURST_LEDGER_URL": settings.ledger_url,
            "DOWNBURST_SENDER__NAME": f"{settings.sender.name or gethostname()}-{number}",
            "DOWNBURST_SENDER__PUBLIC": _address(host, port),
            "DOWNBURST_SITES": _address(listens, port),
            "DOWNBURST_HTTP": f"127.0.0.1:{port + 1}",
        },
        ready_url=f"http://127.0.0.1:{port + 1}/health/ready",
    )


def _host_for_sites(settings: Settings) -> str:
    """The address at which sites reach this machine."""
    host = split_address(settings.sender.public or settings.sites)[0]
    if host in ("0.0.0.0", "::"):  # noqa: S104
        raise BadSettings(
            f"sites can't be redirected to {host}; set sender.public to HOST:PORT by which they reach this machine "
            "(each sender takes the host, with a port of its own)"
        )
    return host


def _program() -> Sequence[str]:
    """This command line: its script may be next to its packages."""
    if Path(sys.argv[0]).is_file():
        return sys.executable, sys.argv[0]
    return sys.executable, "-c", "from downburst_app.cli import main; main()"


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


_LOG = logging.getLogger("downburst.fleet")
STOP_S = 15.0
"""Time for a sender's work after its sites are gone."""
