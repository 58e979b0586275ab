"""`downburst doctor`: faults of this machine that would prevent or impair a hub or site, with remedies."""

import json
import os
import platform
import resource
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from downburst.domain.readings import advice
from downburst.foundation.errors import DownburstError
from downburst.foundation.sizes import size_text
from downburst.host.absent_transports import absent_transports
from downburst.host.host_clock import ClockSource, read_host_clock
from downburst.settings.addresses import split_address
from downburst_app.cli.client import AsJson, HubClient, show
from downburst_app.cli.hub.brokers import brokers_found
from downburst_app.cli.hub.findings import BAD, OK, WEAK, Finding, Found
from downburst_app.cli.hub.sign_in_provider import provider_found
from downburst_worker.binary import find_node

if TYPE_CHECKING:
    from downburst.settings.hub import Settings


def doctor(
    *,
    data_dir: Annotated[Path | None, typer.Option("--data-dir", help="Data directory of the hub.")] = None,
    settings: Annotated[Path | None, typer.Option("--settings", help="Settings file (TOML).")] = None,
    site_dir: Annotated[Path | None, typer.Option("--site-dir", help="Directory of a site on this machine.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check this machine and a running hub: system, clock, multicast, buffers, rights, disk, ports, versions.

    Exits with 0 if no check fails, with 1 otherwise.

    Example: downburst doctor --data-dir /var/lib/downburst
    """
    from downburst.settings.hub import load_settings

    loaded = load_settings(settings, data_dir=data_dir)
    findings = list(examine(loaded))
    if site_dir is not None:
        findings += findings_of_site(find_node(loaded.node), site_dir)
    if as_json:
        show([asdict(one) for one in findings])
    for one in findings if not as_json else ():
        print(f"{one.state:5} {one.about:11} {one.sentence}" + (f"\n{'':18}{one.remedy}" if one.remedy else ""))
    if any(one.state == BAD for one in findings):
        raise typer.Exit(1)


def examine(settings: "Settings") -> Iterator[Finding]:
    """All findings, one after the other; a check that fails with an error is a finding itself."""
    for about, look in _LOOKS.items():
        try:
            yield from (Finding(about, *found) for found in look(settings))
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            yield Finding(about, WEAK, f"can't be checked: {error}")


def findings_of_site(node: Path, site_dir: Path) -> list[Finding]:
    """The state of a running site: the way of large products to its files, and how its host reads groups."""
    argv = [str(node), "site-control", "--dir", str(site_dir), "--json", "status"]
    told = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=10)
    if told.returncode != 0:
        return [Finding("site", WEAK, told.stderr.strip().removeprefix("downburst-node: "))]
    status = json.loads(told.stdout)
    return [_files_of_site(status["files"]), *map(_group_of_site, status.get("groups", []))]


def _files_of_site(files: dict[str, Any] | None) -> Finding:
    if files is None:
        return Finding("site", OK, "it writes no files (--no-files)")
    sentence = f"the way of large products to files is {files['used']}"
    if files["linked_bytes"]:
        held = size_text(files["linked_bytes"])
        sentence += f"; {held} of products that left the log still take space, because their files exist"
    if not files["reason"]:
        return Finding("site", OK, sentence)
    remedy = "put log/ and spool/ of the site on one file system, or accept that bytes are written twice"
    return Finding("site", WEAK, f"{sentence}, not {files['asked']}: {files['reason']}", remedy)


def _group_of_site(group: dict[str, Any]) -> Finding:
    """Drops, receive buffer and priority of a feed's group, with the setting to change."""
    from downburst_worker.messages.reading_lines import host_reading

    reading = host_reading(group)
    sentence = (
        f"the group of {group['feed']}: {reading.dropped} datagrams dropped for want of room, receive buffer "
        f"{reading.granted_bytes} of {reading.needed_bytes} bytes needed, priority {reading.standing}"
    )
    said = advice(group["feed"], reading)
    return Finding("site", OK, sentence) if said is None else Finding("site", WEAK, sentence, said)


def _system(_: "Settings") -> Iterator[Found]:
    release = platform.release()
    if platform.system() != "Linux":
        yield BAD, f"{platform.system()} is not Linux", "run it on Linux, or in a container"
        return
    number = tuple(int(part) for part in release.split("-")[0].split(".")[:2])
    if number < OLDEST_KERNEL:
        yield WEAK, f"kernel {release}: circuits and pacing are tested from {_dotted(OLDEST_KERNEL)} on", "upgrade it"
    else:
        yield OK, f"Linux {release}, {len(os.sched_getaffinity(0))} cores"
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if files < FILES:
        yield WEAK, f"{files} open files are allowed: sites and segments may need more", f"LimitNOFILE={FILES}"


def _clock(_: "Settings") -> Iterator[Found]:
    clock = read_host_clock()
    by = "the kernel" if clock.source is ClockSource.KERNEL else clock.source.value
    if not clock.synchronised:
        sentence = f"the clock follows no reference, by {by}, so latencies will be wrong"
        yield BAD, sentence, "start chrony or systemd-timesyncd, and check its servers"
    elif clock.error_us > CLOCK_ERROR_US:
        sentence = f"the clock may be off by {clock.error_us / 1000:.1f} ms, by {by}"
        yield WEAK, sentence, "check `chronyc tracking`; use nearer servers"
    else:
        followed = f", which follows {clock.reference}" if clock.reference else ""
        yield OK, f"synchronised by {by}{followed}, off by at most {clock.error_us / 1000:.1f} ms"


def _multicast(_: "Settings") -> Iterator[Found]:
    try:
        heard = multicast_is_heard()
    except OSError as error:
        remedy = "give the interface of the sites a route: ip route add 224.0.0.0/4 dev IFACE"
        yield WEAK, f"no multicast leaves this machine ({error.strerror}): unicast is used", remedy
        return
    if heard:
        yield OK, "a group can be joined and received here; legs test the network themselves"
    else:
        yield WEAK, "packets to a group are not received here", "let the firewall pass UDP to 239.0.0.0/8"


def _amt(settings: "Settings") -> Iterator[Found]:
    from downburst.settings.multicast import amt_endpoint

    if not settings.multicast.amt_relays:
        yield OK, "no AMT relay is set; sites with the interface amt ask the anycast addresses"
    for relay in settings.multicast.amt_relays:
        answers_s = amt_answer_s(*amt_endpoint(relay))
        if answers_s is None:
            remedy = "start downburst-node amt-relay there, and let UDP to its port pass with its answers"
            yield WEAK, f"the AMT relay {relay} does not answer: sites that need it receive by unicast", remedy
        else:
            yield OK, f"the AMT relay {relay} answers within {answers_s * 1e3:.1f} ms"


def amt_answer_s(address: str, port: int) -> float | None:
    """The seconds until an AMT relay answers a discovery (RFC 7450, section 5.1.1), of three; None: it does not."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        asking.settimeout(AMT_PATIENCE_S)
        for _ in range(3):
            nonce, began_s = os.urandom(4), time.monotonic()
            try:
                asking.connect((address, port))
                asking.send(b"\x01\x00\x00\x00" + nonce)
                if asking.recv(64)[:8] == b"\x02\x00\x00\x00" + nonce:
                    return time.monotonic() - began_s
            except OSError:
                continue
    return None


def _buffers(_: "Settings") -> Iterator[Found]:
    for name, needed, why in (("rmem_max", RECEIVE_BUFFER, "receives"), ("wmem_max", SEND_BUFFER, "sends")):
        found = int(Path(f"/proc/sys/net/core/{name}").read_text())
        if found >= needed or _has(CAP_NET_ADMIN):
            yield (
                OK,
                f"net.core.{name} is {found}" + ("" if found >= needed else ", and CAP_NET_ADMIN overrides it"),
            )
        else:
            sentence = f"net.core.{name} is {found}: a leg that {why} fast loses packets"
            yield WEAK, sentence, f"sysctl -w net.core.{name}={needed}"


def _privileges(settings: "Settings") -> Iterator[Found]:
    if _has(CAP_NET_ADMIN):
        yield OK, "CAP_NET_ADMIN: circuits, marks and large buffers"
    else:
        remedy = "AmbientCapabilities=CAP_NET_ADMIN in the unit, if circuits are wanted"
        yield WEAK, "no CAP_NET_ADMIN: no circuits of its own; everything else works", remedy
    low = [port for port in (_port(settings.http), _port(settings.sites)) if 0 < port < LOWEST_FREE]
    if low and not _has(CAP_NET_BIND_SERVICE):
        yield BAD, f"port {low[0]} needs CAP_NET_BIND_SERVICE", "grant it, or choose a port above 1023"


def _real_time(_: "Settings") -> Iterator[Found]:
    """Whether receivers may have `--receive-priority`, and whether the kernel limits threads that spin."""
    most = resource.getrlimit(resource.RLIMIT_RTPRIO)[1]
    allowed = _has(CAP_SYS_NICE) or most != 0
    by = "CAP_SYS_NICE" if _has(CAP_SYS_NICE) else f"LimitRTPRIO={most}"
    if allowed:
        yield OK, f"receive --receive-priority is possible here ({by})"
    else:
        yield OK, "receive --receive-priority would be refused here; it needs CAP_SYS_NICE or LimitRTPRIO"
    throttle_us = int(Path("/proc/sys/kernel/sched_rt_runtime_us").read_text())
    if throttle_us < 0 and allowed:
        sentence = "kernel.sched_rt_runtime_us is -1: on kernels before 6.12 a real-time thread may take a whole core"
        yield WEAK, sentence, "sysctl -w kernel.sched_rt_runtime_us=950000"


def _transports(_: "Settings") -> Iterator[Found]:
    for one in absent_transports():
        yield OK, f"{one.name} is not considered: {one.reason}"


def _disk(settings: "Settings") -> Iterator[Found]:
    there = next(path for path in (settings.data_dir, *settings.data_dir.absolute().parents) if path.is_dir())
    if not os.access(there, os.W_OK):
        yield BAD, f"{there} can't be written", "correct its rights, or name another one with --data-dir"
    usage = shutil.disk_usage(there)
    share = usage.free / usage.total
    said = f"{usage.free / 1e9:.1f} GB of {usage.total / 1e9:.1f} GB are free at {there}"
    if share < settings.alarms.disk_free_share:
        yield BAD, f"{said}: less than alarms.disk_free_share", "free some space, or keep feeds for less time"
    else:
        yield OK, said


def _ports(settings: "Settings") -> Iterator[Found]:
    for name, address in (("http", settings.http), ("sites", settings.sites)):
        host, port = split_address(address)
        if port == 0 or _may_listen(host, port):
            yield OK, f"{name}: {address} is free"
        elif _hub_answers(settings.http):
            yield OK, f"{name}: a hub listens on {address}"
        else:
            yield BAD, f"{name}: another program listens on {address}", f"ss -ltnp 'sport = :{port}' names it"


def _versions(settings: "Settings") -> Iterator[Found]:
    from downburst.ledger import standing_of

    own = version("downburst")
    try:
        node = find_node(settings.node)
    except DownburstError as error:
        yield BAD, error.sentence
        return
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True, timeout=10).stdout.split()
    if said[-1:] == [own]:
        yield OK, f"downburst and downburst-node are of version {own}"
    else:
        yield BAD, f"downburst is {own}, {node} is {' '.join(said)}", "install both of the same release"
    try:
        found = standing_of(settings.url_of_ledger)
    except DownburstError as error:
        yield BAD, error.sentence
        return
    if found.found is not None and found.pending:
        yield (
            WEAK,
            f"the ledger has schema {found.found}, older than this release",
            "the hub upgrades it when it starts",
        )
    else:
        yield OK, f"the ledger's schema is {found.found or 'created when the hub starts'}"


def _probes(settings: "Settings") -> Iterator[Found]:
    answer = _health_of(settings.http)
    if answer is None:
        yield OK, f"no hub answers at {settings.http}; the probes of a running hub are shown here"
    elif answer.get("code") == "node-away":
        yield BAD, str(answer.get("detail", "")), "downburst status shows the node's last lines"
    else:
        for name, found in answer.get("probes", {}).items():
            if found == "ok":
                yield OK, f"{name} passes"
            else:
                yield BAD, f"{name} fails: {found}", _remedies().get(name, "read the hub's log")


def _bridges(settings: "Settings") -> Iterator[Found]:
    """Each broker of a running hub's sources and publishers."""
    if not _hub_answers(settings.http):
        yield OK, f"no hub answers at {settings.http}; the brokers of a running hub are shown here"
        return
    try:
        sources, publishers = _bridges_of(settings.http)
    except DownburstError as error:
        yield WEAK, f"the hub does not show its bridges: {error.sentence}"
        return
    yield from brokers_found(sources, publishers, datetime.now(UTC))


def _sign_in(settings: "Settings") -> Iterator[Found]:
    """The provider at which users of a running hub sign in."""
    if _hub_answers(settings.http):
        yield from provider_found(settings.http)
    else:
        yield OK, f"no hub answers at {settings.http}; the provider of a running hub is checked here"


def multicast_is_heard() -> bool:
    """Joins a group on the default interface, sends to it and waits a second for the packet."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as hearing,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending,
    ):
        hearing.bind(("", 0))
        hearing.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + bytes(4))
        hearing.settimeout(1.0)
        sending.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
        sending.sendto(GREETING, (GROUP, hearing.getsockname()[1]))
        try:
            return hearing.recv(100) == GREETING
        except TimeoutError:
            return False


def _may_listen(host: str, port: int) -> bool:
    family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(place)
        except OSError:
            return False
    return True


def _hub_answers(http: str) -> bool:
    return _health_of(http) is not None


def _bridges_of(http: str) -> tuple[list[Any], list[Any]]:
    """The sources and publishers of a hub."""
    client = HubClient(f"http://{http}")
    return client.every("v1", "bridges"), client.every("v1", "publishers")


def _health_of(http: str) -> dict[str, Any] | None:
    """The answer of a hub's `/healthz`; None: the port is closed, or used by another program."""
    import httpx

    try:
        found = httpx.get(f"http://{http}/healthz", timeout=2).json()
    except (httpx.HTTPError, json.JSONDecodeError):
        return None
    is_hub = isinstance(found, dict) and ("ledger" in found or found.get("code") in ("node-away", "probe-failed"))
    return found if is_hub else None


def _remedies() -> dict[str, str]:
    """By probe, the first remedy; those of parts too."""
    from downburst.parts.names import Part

    return _REMEDIES | {part.command: part.remedy for part in Part}


def _has(capability: int) -> bool:
    lines = Path("/proc/self/status").read_text().splitlines()
    effective = next(line.split()[1] for line in lines if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> capability & 1)


def _port(address: str) -> int:
    return split_address(address)[1]


def _dotted(number: tuple[int, ...]) -> str:
    return ".".join(map(str, number))


_LOOKS: "dict[str, Callable[[Settings], Iterator[Found]]]" = {
    "system": _system,
    "clock": _clock,
    "multicast": _multicast,
    "amt": _amt,
    "buffers": _buffers,
    "privileges": _privileges,
    "real-time": _real_time,
    "transports": _transports,
    "disk": _disk,
    "ports": _ports,
    "versions": _versions,
    "probes": _probes,
    "bridges": _bridges,
    "sign-in": _sign_in,
}
_REMEDIES = {
    "event-loop": "wait some seconds and check again; if it persists, read the hub's log and restart the hub",
    "ledger": "check the disk and the ledger's server, and look for another program that locks the ledger",
    "node": "downburst status shows the node's last lines; the hub starts it again by itself",
    "store": "check the disk and permissions of the data directory, or the brokers",
    "alarms": "read the hub's log: alarms are late or missing until this passes",
    "rounds": "the hub is overloaded or hangs: read its log, and restart it",
}
"""By probe of the hub itself, the first remedy."""
OLDEST_KERNEL = (5, 10)
FILES = 4_096
AMT_PATIENCE_S = 1.0
CLOCK_ERROR_US = 100_000
RECEIVE_BUFFER = 16 * 1024 * 1024
"""The buffer that a receiver of multicast requests."""
SEND_BUFFER = 4 * 1024 * 1024
CAP_NET_BIND_SERVICE, CAP_NET_ADMIN, CAP_SYS_NICE = 10, 12, 23
LOWEST_FREE = 1_024
GROUP = "239.255.73.70"
GREETING = b"downburst doctor"
