"""Events as records: JSON in an envelope that names the kind and the version of its schema.

A field added with a default keeps the version: older readers ignore it, newer readers fill it in. The version
rises when an older reader would misunderstand the record; such a reader then knows that it missed something. An
unknown kind is of no use to this reader, so it is ignored. `tests/golden/events` keeps all formats that were ever
written.
"""

import json
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from downburst.domain.events import Event


class ForeignRecord(ValueError):
    """Not a record of Downburst."""


class NewerSchema(ValueError):
    """A record of a newer release with a meaning unknown to this one."""


def encode(event: Event) -> bytes:
    """The record of an event."""
    kind = type(event).__name__
    # An integer in place of a float is no reason for a warning; it is read as a float.
    content = _ADAPTERS[kind].dump_python(event, mode="json", warnings=False)
    envelope = {"kind": kind, "schema": SCHEMAS.get(kind, 1), "event": content}
    return json.dumps(envelope, separators=(",", ":")).encode()


def decode(record: bytes) -> Event | None:
    """The event of a record; None for an unknown kind."""
    try:
        envelope = json.loads(record)
        kind, schema, content = envelope["kind"], envelope["schema"], envelope["event"]
    except (ValueError, KeyError, TypeError):
        raise ForeignRecord(f"{record[:60]!r} is not a record of Downburst") from None
    if kind not in _ADAPTERS:
        return None
    if not isinstance(schema, int) or schema > SCHEMAS.get(kind, 1):
        raise NewerSchema(f"{kind} of schema {schema}")
    try:
        found: Event = _ADAPTERS[kind].validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        raise ForeignRecord(f"{kind} has a bad {first['loc']}: {first['msg']}") from None
    return found


_ADAPTERS: dict[str, TypeAdapter[Any]] = {kind.__name__: TypeAdapter(kind) for kind in get_args(Event)}
SCHEMAS: dict[str, int] = {}
"""Schema versions by kind; the default is 1."""
