"""The kind of a file, by its content."""

import re
from enum import StrEnum

from downburst.foundation.errors import BadInput
from downburst.wis2.imports.files import ConfigFile
from downburst.wis2.imports.tree import Items, Table, Tree


class Kind(StrEnum):
    """The kinds of documents; environment files are none."""

    COMPOSE = "compose"
    DOWNLOADER = "wis2downloader"
    SUBSCRIPTIONS = "subscriptions of wis2downloader"
    PYWIS = "pywis-pubsub"
    DATASET = "dataset of wis2box"
    MAPPINGS = "data mappings of wis2box"


def is_environment_file(file: ConfigFile) -> bool:
    """True if the first line that is no comment is an assignment."""
    lines = (line.strip() for line in file.text.split("\n"))
    first = next((line for line in lines if line and not line.startswith("#")), "")
    return _ASSIGNMENT.match(first) is not None


def kind_of(file: ConfigFile, tree: Tree) -> Kind:
    """The kind of a document; refuses one of other programs."""
    found = _of_items(tree) if isinstance(tree, Items) else _of_table(tree) if isinstance(tree, Table) else None
    if found is None:
        raise BadInput(
            f"{file.name} is no configuration of wis2box, wis2downloader or pywis-pubsub; name their wis2box.env, "
            "metadata (MCF), data mappings, config.json, subscriptions or compose file"
        )
    return found


def _of_table(table: Table) -> Kind | None:
    keys = {one.key for one in table.entries}
    if table.table("services") is not None:
        return Kind.COMPOSE
    if "mcf" in keys or {"metadata", "identification"} <= keys:
        return Kind.DATASET
    data = table.table("data")
    if data is not None and any(isinstance(one.value, Table) and one.value.entry("plugins") for one in data.last):
        return Kind.MAPPINGS
    if keys & {"subscribe_topics", "publish_topic"} or {"broker", "storage"} <= keys:
        return Kind.PYWIS
    if {"topics"} <= keys or (keys & {"broker_hostname", "broker_url"} and keys & DOWNLOADS):
        return Kind.DOWNLOADER
    return Kind.SUBSCRIPTIONS if _are_subscriptions(table) else None


def _of_items(items: Items) -> Kind | None:
    is_list = items.items and all(isinstance(one, Table) and one.text("topic") for one in items.items)
    return Kind.SUBSCRIPTIONS if is_list else None


def _are_subscriptions(table: Table) -> bool:
    """One subscription, or several by topic or by id."""
    if table.text("topic") is not None:
        return True
    return bool(table.last) and all(
        isinstance(one.value, Table) and ("/" in one.key or one.value.text("topic")) for one in table.last
    )


DOWNLOADS = {"download_dir", "download_directory", "download_workers"}
_ASSIGNMENT = re.compile(r"(export\s+)?[A-Za-z_][A-Za-z0-9_.]*\s*=")
