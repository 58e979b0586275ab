"""The page docs/settings.md: every setting with type, unit, default, variable and sentence, from the code."""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from downburst.settings.delivery import DeliverySettings
from downburst.settings.hub import Settings
from downburst.settings.process import ProcessSettings
from downburst.settings.records import RecordSettings


@dataclass(frozen=True)
class Setting:
    """A setting by its path in the settings file."""

    path: str
    variable: str
    """The environment variable; of a value inside a list or a table by feed: that of the whole, in JSON."""
    field: FieldInfo
    in_json: bool

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def kind(self) -> str:
        """The type with its bounds, in words."""
        bounds = [words for one in self.field.metadata if (words := _bound(one))]
        return ", ".join([_type(self.field.annotation), *bounds])

    @property
    def unit(self) -> str:
        """The unit of a number; empty for everything else."""
        if not _is_number(self.field.annotation):
            return ""
        return next((unit for pattern, unit in UNITS.items() if re.search(pattern, self.path)), "")

    @property
    def default(self) -> str:
        """The default as the settings file would have it; empty where none is set."""
        if self.field.is_required():
            return "required"
        return _shown(self.field.get_default(call_default_factory=True))


def markdown() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, sentence, settings in sections():
        parts.append(f"## {title}\n\n{sentence}\n")
        parts += [_entry(setting) for setting in settings]
    return "\n".join(parts)


def sections() -> Iterator[tuple[str, str, list[Setting]]]:
    """Heading, sentence and settings of each section of the file; first those without a section of their own."""
    for title, model in TOP_LEVEL.items():
        inside = {name: Settings.model_fields[name] for name in model.model_fields}
        yield title, _first_line(model), list(_settings(inside, "", "DOWNBURST_"))
    for name, field in Settings.model_fields.items():
        inner = section_inside(field.annotation)[0]
        if inner is not None:
            below = _settings(inner.model_fields, f"{name}.", f"DOWNBURST_{name.upper()}__")
            yield f"Section `{name}`", _first_line(inner), list(below)


def _settings(
    fields: dict[str, FieldInfo], prefix: str, variable: str, *, in_json: bool = False
) -> Iterator[Setting]:
    for name, field in fields.items():
        own = variable if in_json else variable + name.upper()
        inner, key = section_inside(field.annotation)
        if field.description:
            yield Setting(prefix + name, own, field, in_json)
        if inner is not None:
            nested = own if in_json or key else f"{own}__"
            yield from _settings(inner.model_fields, f"{prefix}{name}.{key}", nested, in_json=in_json or bool(key))


def section_inside(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    """The section inside a type, and the words that stand for its name in a path where it has several."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ""
    key = {dict: "FEED.", tuple: "N.", list: "N."}.get(get_origin(annotation), "")
    found = next((inner for one in get_args(annotation) if (inner := section_inside(one)[0])), None)
    return found, key


def _entry(setting: Setting) -> str:
    facts = [f"Type: {setting.kind}"]
    facts += [f"Unit: {setting.unit}"] if setting.unit else []
    facts += [f"Default: {setting.default or 'none'}"]
    facts += [f"Environment: `{setting.variable}`{', in JSON' if setting.in_json else ''}"]
    sentence = (setting.field.description or "").replace("\\", "\\\\")
    return f"### `{setting.path}`\n\n{wrapped(sentence)}\n\n{wrapped('. '.join(facts))}.\n"


def wrapped(text: str) -> str:
    """A paragraph in lines of the documents' width."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _type(annotation: Any) -> str:
    origin, inside = get_origin(annotation), [one for one in get_args(annotation) if one not in (NoneType, ...)]
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in inside)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_type, inside)))
    if origin in (tuple, list, Annotated):
        return f"{'' if origin is Annotated else 'list of '}{_type(inside[0])}"
    if origin is dict or issubclass(annotation, BaseModel):
        return "table"
    if issubclass(annotation, Enum):
        return ", ".join(f"`{one.value}`" for one in annotation)
    return TYPES[annotation.__name__]


def _is_number(annotation: Any) -> bool:
    return {int, float} & {annotation, *get_args(annotation)} != set()


def _bound(constraint: Any) -> str:
    found = [
        f"{words} {getattr(constraint, attribute):,}"
        for kind, attribute, words in BOUNDS
        if isinstance(constraint, kind) and getattr(constraint, attribute) is not None
    ]
    return " and ".join(found)


def _shown(value: Any) -> str:
    if value is None or value in ("", (), [], {}) or isinstance(value, BaseModel):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float):
        return f"`{value:.12g}`"
    if isinstance(value, (tuple, list)):
        return ", ".join(map(_shown, value))
    return f"`{value.value if isinstance(value, Enum) else value}`"


def _first_line(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").strip().partition("\n")[0]


WIDTH = 118
FILE = Path(__file__).resolve().parents[3] / "docs" / "settings.md"
TOP_LEVEL: dict[str, type[BaseModel]] = {
    "Processes and addresses": ProcessSettings,
    "Delivery": DeliverySettings,
    "Data and history": RecordSettings,
}
"""Settings at the top level of the file; their headings here."""
TYPES = {
    "bool": "`true` or `false`",
    "int": "whole number",
    "float": "number",
    "str": "text",
    "Path": "path",
    "IPv4Network": "IPv4 network",
    "IPv6Network": "IPv6 network",
}
BOUNDS = (
    (annotated_types.Gt, "gt", "above"),
    (annotated_types.Ge, "ge", "at least"),
    (annotated_types.Lt, "lt", "below"),
    (annotated_types.Le, "le", "at most"),
    (annotated_types.MaxLen, "max_length", "length at most"),
    (annotated_types.MinLen, "min_length", "length at least"),
)
UNITS = {
    r"_bytes_per_second$": "bytes per second",
    r"_bps$": "bits per second",
    r"_per_minute(_|$)": "per minute",
    r"(_seconds|_s)$": "seconds",
    r"_ms$": "milliseconds",
    r"_minutes$": "minutes",
    r"(_hours|_h)$": "hours",
    r"_days$": "days",
    r"_mb$": "megabytes",
    r"bytes": "bytes",
    r"_percent$": "per cent",
    r"(_share|_quantile|min_gain)$": "share of 1",
    r"(_factor|_cost|time_scale)$": "factor",
    r"(_port|port_base)$": "UDP or TCP port",
}
"""By the name of a setting; the first that fits. Other numbers are counts."""
HEAD = """\
# Settings

Generated from `core/downburst/settings`; do not edit.

Settings come from three places. The command line overrides the environment, and the environment overrides the file:

* the command line
* the environment: `DOWNBURST_DATA_DIR`, and with two underscores for sections `DOWNBURST_MULTICAST__RATE_BPS`
* a file in TOML, given with `--settings`

A path such as `multicast.rate_bps` is the key `rate_bps` in the table `[multicast]` of the file. `FEED` stands for
the name of a feed, `N` for an entry of a list:

```toml
data_dir = "/var/lib/downburst"

[multicast]
rate_bps = 400_000_000

[multicast.feeds.NGRID]
rate_bps = 600_000_000

[[watch.rules]]
match = "([A-Z0-9]+)/(.*)"
feed = '\\1'
product_id = '\\2'
```

A hub refuses unknown settings and values out of bounds, and names the setting.
"""
