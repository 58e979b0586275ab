"""Parts of LDM's registry and EXEC lines that a hub has in another form, and parts without meaning to it."""

import shlex
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from downburst.settings.hub import Settings


def setting_of(key: str, registry: Mapping[str, str]) -> tuple[str, Any] | None:
    """The hub's setting for a key of the registry, with its value; None without a setting or a valid value."""
    match key:
        case "/hostname":
            return _accepted("origin", registry[key])
        case "/server/max-clients":
            value = registry[key]
            return _accepted("ldm.max_clients", int(value)) if value.isdecimal() else None
        case "/server/ip-addr" | "/server/port":
            # A hub adds its own port to an address without one.
            is_port = registry.get("/server/port", "388").isdecimal()
            return _accepted("ldm.listen", [listening(registry)]) if is_port else None
    return None


def listening(registry: Mapping[str, str]) -> str:
    """HOST:PORT on which LDM listens according to the registry."""
    host = registry.get("/server/ip-addr", "0.0.0.0")  # noqa: S104
    return f"{f'[{host}]' if ':' in host else host}:{registry.get('/server/port', '388')}"


def rtstats_setting(command: str) -> tuple[str, Any] | None:
    """The setting for an EXEC of rtstats: the collector that it names."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if "-h" not in words[:-1]:
        return None
    return _accepted("ldm.rtstats", words[words.index("-h") + 1])


def max_age_s(registry: Mapping[str, str]) -> int | None:
    """Limit in seconds on a source's start in the past and on the age of products; None: the default."""
    ages = [registry[key] for key in AGES if key in registry]
    return int(ages[0]) if ages and ages[0].isdecimal() and int(ages[0]) > 0 else None


def reason(key: str) -> str:
    """The reason why a key of the registry has no meaning for a hub."""
    found = (why for begin, why in REASONS.items() if key == begin or key.startswith(f"{begin}/"))
    return next(found, "no setting of a hub corresponds to it, or its value can't be used there")


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings in the format of a hub's settings file."""
    return "".join(f"{name} = {_toml(value)}\n" for name, value in settings.items())


def _accepted(name: str, value: Any) -> tuple[str, Any] | None:
    """The setting, unless the hub would refuse the value. An unknown name of a setting is a bug here."""
    section, _, last = name.rpartition(".")
    field = Settings.model_fields[section or last]
    kind: Any = field.annotation
    try:
        TypeAdapter(kind).validate_python({last: value} if section else value)
    except ValidationError as error:
        if any(one["type"] == "extra_forbidden" for one in error.errors()):
            raise
        return None
    return name, value


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value) if isinstance(value, int) else f'"{value}"'


AGES = ("/server/max-latency", "/server/time-offset")

REASONS = {
    "/queue/path": "each feed has its log under the hub's data directory",
    "/queue/slots": "logs have no slots",
    "/server/enable-anti-DOS": "newer connections from an address do not end older ones",
    "/server/config-path": "name the file with --ldmd-conf",
    "/reconciliation-mode": "retention is by hours and bytes; undelivered products are reported as expired",
    "/pqact/config-path": "name the file with --pqact-conf",
    "/pqact": "a site runs actions, where its own command line says: downburst-node receive --actions-dir",
    "/pqsurf": "bulletins are not split; keep pqsurf beside a site that needs it",
    "/surf-queue": "bulletins are not split; keep pqsurf beside a site that needs it",
    "/scour": "a site removes old files by the same file: downburst-node receive --scour scour.conf",
    "/log": "a hub logs to its standard error, which systemd keeps; the journal has its own limits",
    "/metrics": "a hub keeps its figures itself: the page, downburst status, /metrics for Prometheus",
    "/check-time": "sites measure the offset of their clocks from the hub's; an alarm reports a large one",
    "/insertion-check-interval": "an alarm reports a silent feed",
    "/delete-info-files": "the position of a source is kept in the data directory, and not removed",
    "/fmtp-retx-timeout": "LDM-7 is not supported; multicast has its own repair",
    "/oess-pathname": "circuits are requested with downburst circuits, not through OESS",
}
"""Keys of the registry, or their prefixes, without meaning to a hub, and the reason."""
