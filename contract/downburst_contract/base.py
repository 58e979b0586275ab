"""What all requests share, and what all answers share."""

from collections.abc import Iterable
from dataclasses import fields
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema, model_validator
from pydantic_core import PydanticUndefined

Text = Annotated[str, Field(max_length=500)]
Pattern = Annotated[str, Field(max_length=4096)]
Bytes = Annotated[int, Field(gt=0, le=2**62)]
OffsetTime = Annotated[
    datetime,
    PlainSerializer(datetime.isoformat, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""An instant that is written with its offset, `+00:00`; others end in `Z`. Both are RFC 3339."""


class Shape(BaseModel):
    """What all requests share: no member that is not known, no null where none belongs."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, use_attribute_docstrings=True)

    @model_validator(mode="after")
    def _no_null_where_none_belongs(self) -> Self:
        """A member that is given must have a value, unless null means something for it."""
        for name in self.model_fields_set - self._nullable():
            if getattr(self, name) is None:
                raise ValueError(f"{name} can't be null; leave it out to keep or default it")
        return self

    @classmethod
    def _nullable(cls) -> set[str]:
        return set()


class Answer(BaseModel):
    """What all answers share. A client of an older release ignores members that it does not know."""

    model_config = ConfigDict(populate_by_name=True, from_attributes=True, use_attribute_docstrings=True)


class OpenAnswer(Answer):
    """An answer that repeats what the node said: members without a name here are passed on."""

    model_config = ConfigDict(extra="allow")


def members(value: Any, *, without: Iterable[str] = (), **renamed: str) -> dict[str, Any]:
    """The members of a value of the domain under the names of the contract; `renamed`: old names by new ones.

    Shallow: what lies deeper is read by the shape that holds it, which costs less than a copy.
    """
    left_out = {*without, *renamed.values()}
    kept = {one.name: getattr(value, one.name) for one in fields(value) if one.name not in left_out}
    return {new: getattr(value, old) for new, old in renamed.items()} | kept


def names(shape: type[BaseModel], *, without: Iterable[str] = ()) -> tuple[str, ...]:
    """The names of a shape's members as clients write them, in order."""
    return tuple(field.alias or name for name, field in shape.model_fields.items() if name not in without)


def defaults(shape: type[BaseModel]) -> dict[str, Any]:
    """What a hub takes for the members of a request that are left out, as far as that is the same for all."""
    given = ((field.alias or name, field.get_default()) for name, field in shape.model_fields.items())
    return {name: value for name, value in given if value not in (None, PydanticUndefined)}


Number = int | float
"""A number that is written as it was computed: `2`, or `2.0`."""
