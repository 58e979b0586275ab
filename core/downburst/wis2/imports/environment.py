"""The variables of wis2box and wis2downloader, from environment files and from services of a compose file."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from downburst.foundation.errors import BadInput
from downburst.wis2.imports.brokers import Signed, StatedBroker, broker_of_parts, broker_of_url, mqtt_version
from downburst.wis2.imports.files import ConfigFile
from downburst.wis2.imports.judging import judge, judge_variables
from downburst.wis2.imports.reasons import (
    ENVIRONMENT,
    KNOWN_ENVIRONMENT,
    NO_CONTAINERS,
    SERVICES,
    SUBSCRIBER,
    ruling,
)
from downburst.wis2.imports.result import Imported, stated
from downburst.wis2.imports.subscriptions import Subscribed
from downburst.wis2.imports.tree import Entry, Items, Leaf, Table
from downburst.wis2.imports.variables import Variable, value_of

Variables = Mapping[str, Variable]


def is_environment(variables: Variables) -> bool:
    """True if one of the variables belongs to wis2box or wis2downloader."""
    return any(name.startswith(KNOWN_ENVIRONMENT) for name in variables)


def subscribed(made: Imported, own: Variables, others: Variables = MappingProxyType({})) -> Subscribed:
    """The brokers that the own variables name for downloads; the others have values that they use."""
    found, variables = Subscribed(), {**others, **own}
    for host, port, user, password, transport in (WIS2BOX, VERSION_2):
        if host not in own:
            continue
        signed = _signed(variables, user, password)
        spot, name = variables[host].spot, value_of(host, variables) or ""
        try:
            mqtt = mqtt_version(value_of("MQTT_VERSION", variables))
            port_text = value_of(port, variables)
            found.brokers.append(broker_of_parts(spot, name, port_text, value_of(transport, variables), signed, mqtt))
        except BadInput as error:
            made.without(spot, stated(host, name, "="), error.sentence)
        remedy = GIVE_SESSION if host == WIS2BOX[0] else GIVE_LIST
        found.advice.append((spot, stated(host, variables[host].written, "="), remedy))
    return found


def own_broker(made: Imported, variables: Variables) -> StatedBroker | None:
    """The broker at which a wis2box announces; wis2box's own defaults count, as there."""
    spot = next(one.spot for one in variables.values() if one.name.startswith("WIS2BOX_"))
    name = "WIS2BOX_BROKER_PUBLIC"
    signed = _signed(variables, "WIS2BOX_BROKER_USERNAME", "WIS2BOX_BROKER_PASSWORD")
    try:
        if name in variables:
            found = broker_of_url(variables[name].spot, value_of(name, variables) or "", Signed())
            is_named = found.password_from is not None and "WIS2BOX_BROKER_PASSWORD" in variables[name].written
            return replace(found, password_from=signed.password_at) if is_named and signed.password_at else found
        host = value_of("WIS2BOX_BROKER_HOST", variables) or "mosquitto"
        port = value_of("WIS2BOX_BROKER_PORT", variables) or "1883"
        default = Signed(signed.user or "wis2box", signed.password or "wis2box", signed.password_at or DEFAULT)
        return broker_of_parts(spot, host, port, "tcp", default)
    except BadInput as error:
        made.without(spot, stated(name, variables[name].written if name in variables else "", "="), error.sentence)
        return None


def base_url(variables: Variables) -> str:
    """The address under which others reach a wis2box."""
    return (value_of("WIS2BOX_URL", variables) or "http://localhost").rstrip("/")


def read_compose(made: Imported, file: ConfigFile, document: Table, known: Variables) -> list[Subscribed]:
    """The brokers of a compose file's services; other services are listed with their replacement."""
    found = []
    services = document.table("services")
    for service in () if services is None else services.last:
        variables = _environment(file, service)
        one = subscribed(made, variables, known)
        found.append(one)
        rule = SUBSCRIBER if one.advice else ruling(service.key, SERVICES) or NO_CONTAINERS
        judge(made, file, f"services.{service.key}", Leaf(service.line, None), rule)
        if is_environment(variables):
            judge_variables(made, list(variables.values()), ENVIRONMENT)
    for entry in document.last:
        if entry.key not in {"services", "version", "name"}:
            made.without(file.at(entry.line), entry.key, NO_CONTAINERS.text)
    return found


def _environment(file: ConfigFile, service: Entry) -> dict[str, Variable]:
    """The variables of a service, which compose files write as a table or as a list of `NAME=VALUE`."""
    entry = service.value.entry("environment") if isinstance(service.value, Table) else None
    if entry is None:
        return {}
    pairs: list[tuple[int, str, str]] = []
    if isinstance(entry.value, Table):
        texts = [(one.line, one.key, one.value) for one in entry.value.last]
        pairs = [(line, key, value.text or "") for line, key, value in texts if isinstance(value, Leaf)]
    elif isinstance(entry.value, Items):
        lines = [(one.line, one.text) for one in entry.value.items if isinstance(one, Leaf) and one.text]
        pairs = [(line, *_parted(text)) for line, text in lines]
    return {name: Variable(file.at(line), name, value) for line, name, value in pairs}


def _parted(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _signed(variables: Variables, user: str, password: str) -> Signed:
    at = f"{variables[password].spot} {password}" if password in variables else ""
    return Signed(value_of(user, variables), value_of(password, variables), at)


WIS2BOX = (
    "DOWNLOAD_BROKER_HOST",
    "DOWNLOAD_BROKER_PORT",
    "DOWNLOAD_BROKER_USERNAME",
    "DOWNLOAD_BROKER_PASSWORD",
    "DOWNLOAD_BROKER_TRANSPORT",
)
VERSION_2 = (
    "GLOBAL_BROKER_HOST",
    "GLOBAL_BROKER_PORT",
    "GLOBAL_BROKER_USERNAME",
    "GLOBAL_BROKER_PASSWORD",
    "MQTT_PROTOCOL",
)
GIVE_SESSION = "no topic is in these files: give DOWNLOAD_DIR/.session-info.json too"
GIVE_LIST = "no topic is in these files: save wis2downloader's GET /subscriptions as a file, and give it too"
DEFAULT = "the default of wis2box for WIS2BOX_BROKER_PASSWORD"
