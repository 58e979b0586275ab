"""Events as records: JSON in an envelope that names the kind and the version of its schema.

A field that is added with a default keeps the version: older readers pass over it, newer readers fill it in. The
version rises where an older reader would misunderstand; such a reader then knows that it missed something. A kind
that is not known here tells this reader nothing, so it is passed over. `tests/golden/events` keeps what was ever
written.
"""

import json
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from downburst.domain.events import Event


class ForeignRecord(ValueError):
    """No record of Downburst's."""


class NewerSchema(ValueError):
    """A record of a release that means something by it which this one does not know."""


def encode(event: Event) -> bytes:
    """The record of an event."""
    kind = type(event).__name__
    # A whole number where a float is meant is no reason for a warning; it is read as a float.
    content = _ADAPTERS[kind].dump_python(event, mode="json", warnings=False)
    envelope = {"kind": kind, "schema": SCHEMAS.get(kind, 1), "event": content}
    return json.dumps(envelope, separators=(",", ":")).encode()


def decode(record: bytes) -> Event | None:
    """The event of a record; None for a kind that is not known here."""
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
"""Versions of schemas by kind; those that are not here are 1."""
