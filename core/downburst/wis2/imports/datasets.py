"""Datasets of a wis2box: their metadata (MCF) and the plugins that handle their files."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import re2

from downburst.domain.bridges.datasets import Dataset
from downburst.foundation.errors import BadInput
from downburst.wis2.imports.files import ConfigFile, Spot
from downburst.wis2.imports.judging import judge, judge_tree
from downburst.wis2.imports.reasons import DATASET, OF_PLUGINS, OTHER_PLUGIN, PLUGINS, Fate, Ruling
from downburst.wis2.imports.result import Imported, stated
from downburst.wis2.imports.tree import Entry, Items, Leaf, Table, Tree, texts


@dataclass(slots=True)
class StatedDataset:
    """A dataset as its files state it."""

    spot: Spot
    topic: str
    """As it is written, with dots or slashes."""
    metadata_id: str | None = None
    centre: str | None = None
    dataset: Dataset | None = None
    fault: str = ""
    """The reason for which there is no description."""
    patterns: list[str] = field(default_factory=list)
    """Names of the files that are announced as they come."""
    media_type: str | None = None

    @property
    def place(self) -> tuple[str, str]:
        """The centre-id and the topic below `…/data/`; refuses topics of other forms."""
        levels = re.sub(r"^origin/a/wis2/", "", self.topic.replace(".", "/").strip("/")).split("/")
        if "data" not in levels:
            raise BadInput("the topic has no level data; write CENTRE/data/core/…")
        before = levels.index("data")
        if before != 1:
            raise BadInput("the topic has the form of the pilot phase, COUNTRY/CENTRE/data/…; write CENTRE-ID/data/…")
        return levels[0], "/".join(levels[before + 1 :])


def read_dataset(made: Imported, file: ConfigFile, document: Table) -> StatedDataset | None:
    """A metadata control file; None if it names no topic."""
    topic = document.entry("wis2box", "topic_hierarchy")
    written = document.text("wis2box", "topic_hierarchy")
    _judge(made, file, document)
    if topic is None or not written:
        why = "it has no wis2box.topic_hierarchy, so nothing is announced for it"
        made.without(file.at(document.line), stated("metadata.identifier", document.text(*IDENTIFIER)), why)
        return None
    centre = document.text("wis2box", "centre_id")
    found = StatedDataset(file.at(topic.line), written, document.text(*IDENTIFIER), centre)
    plugins = document.table("wis2box", "data_mappings", "plugins")
    if plugins is not None:
        read_plugins(made, file, plugins, found)
    try:
        found.dataset = _described(document)
    except BadInput as error:
        found.fault = error.sentence
    return found


def read_mappings(made: Imported, file: ConfigFile, document: Table) -> Iterator[StatedDataset]:
    """The datasets of a file of data mappings, which has no metadata."""
    data = document.table("data")
    for entry in () if data is None else data.last:
        found = StatedDataset(file.at(entry.line), entry.key)
        plugins = entry.value.table("plugins") if isinstance(entry.value, Table) else None
        if plugins is not None:
            read_plugins(made, file, plugins, found)
        yield found


def read_plugins(made: Imported, file: ConfigFile, plugins: Table, dataset: StatedDataset) -> None:
    """Each plugin is carried or has no equivalent; those that pass files on give the publisher its pattern."""
    for of_type in plugins.last:
        for one in of_type.value.items if isinstance(of_type.value, Items) else ():
            if isinstance(one, Table) and (entry := one.entry("plugin")) is not None and one.text("plugin"):
                _plugin(made, file, (of_type.key, entry, one), dataset)


def _plugin(made: Imported, file: ConfigFile, named: tuple[str, Entry, Table], dataset: StatedDataset) -> None:
    kind, entry, plugin = named
    name = plugin.text("plugin") or ""
    rule = PLUGINS.get(name, OTHER_PLUGIN)
    judge(made, file, f"plugins.{kind}", Leaf(entry.line, name), rule)
    rest = tuple(one for one in plugin.entries if one.key not in {"plugin", "notify", "file-pattern"})
    judge_tree(made, file, Table(plugin.line, rest), OF_PLUGINS)
    if (plugin.text("notify") or "").lower() != "true":
        return
    dataset.media_type = dataset.media_type or MEDIA_TYPES.get(kind if name not in TO_BUFR else "bufr4")
    pattern = plugin.entry("file-pattern")
    if pattern is not None and (text := plugin.text("file-pattern")) and name not in TO_BUFR:
        _pattern(made, file.at(pattern.line), text, dataset)


def _pattern(made: Imported, spot: Spot, text: str, dataset: StatedDataset) -> None:
    try:
        re2.compile(text, options=_QUIET)
    except re2.error:
        made.without(spot, stated("file-pattern", text), "it is no regular expression; all products are announced")
    else:
        dataset.patterns.append(text)


def _judge(made: Imported, file: ConfigFile, document: Table) -> None:
    contacts = document.table("contact")
    first = contacts.last[0].key if contacts is not None and contacts.last else ""
    used = {f"contact.{first}.{key}": CONVERTED for key in ("organization", "url", "email", "country")}
    crs = "identification.extents.spatial.crs"
    if all(text == "4326" for text in _all(document, "identification", "extents", "spatial", "crs")):
        used[crs] = Ruling(Fate.CARRIED, "bounds are in degrees of WGS 84")
    others = [one for one in contacts.last if one.key != first] if contacts is not None else []
    for one in others:
        made.without(file.at(one.line), f"contact.{one.key}", "a record names one contact, the first")
    entries = [one if one.key != "contact" else _first(one, first) for one in document.entries]
    judge_tree(made, file, Table(document.line, tuple(entries)), DATASET | used)


def _first(contact: Entry, first: str) -> Entry:
    if not isinstance(contact.value, Table):
        return contact
    kept = tuple(one for one in contact.value.entries if one.key == first)
    return Entry(contact.line, contact.key, Table(contact.value.line, kept))


def _described(document: Table) -> Dataset:
    """The facts of the record; refuses with the first one that is missing."""
    contacts = document.table("contact")
    contact = contacts.last[0].value if contacts is not None and contacts.last else None
    facts = contact if isinstance(contact, Table) else Table(document.line, ())
    needed = {
        "identification.title": document.text("identification", "title"),
        "identification.abstract": document.text("identification", "abstract"),
        "contact.organization": facts.text("organization"),
        "contact.email": facts.text("email"),
        "contact.url": facts.text("url"),
        "wis2box.country": _country(document, facts),
        "identification.extents.temporal.begin": next(iter(_all(document, *EXTENTS, "temporal", "begin")), None),
    }
    missing = [name for name, text in needed.items() if not text]
    if missing:
        raise BadInput(f"the file states no {', '.join(missing)}")
    title, abstract, organization, email, website, country, begin = (
        " ".join((text or "").split()) for text in needed.values()
    )
    keywords = texts(_value(document, "identification", "keywords", "default", "keywords"))
    license_url = document.text("identification", "license", "url")
    facts_of = (title, abstract, organization, email, website, country, tuple(dict.fromkeys(keywords)))
    return Dataset(*facts_of, _instant(begin), _bounds(document), license_url or None)


def _country(document: Table, contact: Table) -> str | None:
    """ISO 3166 in capitals; names of countries, and `int`, are none."""
    stated_ones = (document.text("wis2box", "country"), contact.text("country"))
    codes = [text.upper() for text in stated_ones if text and re.fullmatch(r"[A-Za-z]{2,3}", text)]
    return next((code for code in codes if code != "INT"), None)


def _instant(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput("the begin of the data is no date such as 2026-11-29") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _bounds(document: Table) -> tuple[float, float, float, float] | None:
    written = _all(document, *EXTENTS, "spatial", "bbox")
    if not written:
        return None
    try:
        west, south, east, north = (float(text) for text in written[:4])
    except ValueError:
        raise BadInput("the bounds of the data are no four numbers") from None
    return west, south, east, north


def _all(document: Table, *path: str) -> list[str]:
    """The texts at a path whose last but one value is a list of tables."""
    *way, key = path
    tree = _value(document, *way)
    tables = tree.items if isinstance(tree, Items) else (tree,) if tree is not None else ()
    found = [one.entry(key) for one in tables if isinstance(one, Table)]
    return [text for one in found if one is not None for text in texts(one.value)]


def _value(document: Table, *path: str) -> Tree | None:
    found = document.entry(*path)
    return None if found is None else found.value


CONVERTED = Ruling(Fate.CONVERTED)
IDENTIFIER = ("metadata", "identifier")
EXTENTS = ("identification", "extents")
TO_BUFR = {
    "wis2box.data.csv2bufr.ObservationDataCSV2BUFR",
    "wis2box.data.synop2bufr.ObservationDataSYNOP2BUFR",
}
"""Plugins whose pattern is of the files before they are converted."""

MEDIA_TYPES = {
    "bufr4": "application/bufr",
    "bufr": "application/bufr",
    "bin": "application/bufr",
    "grib2": "application/grib2",
    "grib": "application/grib",
    "xml": "application/xml",
    "geojson": "application/geo+json",
    "json": "application/json",
    "nc": "application/x-netcdf",
}
"""By the endings of files; of bufr4 and grib2 as in wis2box (wis2box/pubsub/message.py)."""
_QUIET = re2.Options()
_QUIET.log_errors = False
