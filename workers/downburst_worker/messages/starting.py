"""The job that starts a node."""

from pathlib import Path
from socket import gethostname

from downburst.settings.hub import Settings
from downburst_worker.messages import lines
from downburst_worker.messages.lines import Line


def start_job(settings: Settings, *, sends: bool) -> Line:
    """The fields of the job `start`, except the address to listen at; makes the directories that it names.

    `sends`: the node sends for a hub on another machine.
    """
    for directory in (settings.node_dir, settings.batch_dir):
        directory.mkdir(parents=True, exist_ok=True)
    return {
        "name": settings.name,
        "data_dir": str(settings.node_dir),
        "origin": settings.origin or gethostname(),
        "multicast_interface": settings.multicast.interface,
        "batch_dir": str(settings.batch_dir),
        "batch_seconds": settings.batch_seconds,
        "tcp_congestion": settings.tcp_congestion,
        "stamp_listen": settings.stamp_listen,
        "fetch_ca_file": _path(settings.bridges_ca_file),
        "data_connections": settings.data_connections,
        "receipt_hours": settings.receipt_hours,
        "receipt_bytes": settings.receipt_bytes,
        "scrub_bytes_per_second": settings.scrub_bytes_per_second,
        "scrub_hours": settings.scrub_hours,
        "host_counters": settings.host_counters,
        "shared_log": lines.shared_log(settings.kafka, sends=sends),
        "heartbeat_seconds": settings.alarms.heartbeat_s,
    }


def _path(file: Path | None) -> str | None:
    return None if file is None else str(file.absolute())
