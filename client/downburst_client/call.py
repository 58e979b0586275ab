"""A call as a value: what is asked of a hub, and the shape of the answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request to a route."""

    method: str
    path: str
    """Percent-encoded; see `path_of`."""
    shape: Any
    """The type of the answer; None: it has no body."""
    query: Mapping[str, Any] = field(default_factory=dict)
    """Those that are None are left out, so that the hub's defaults apply."""
    body: BaseModel | None = None
    content: bytes | None = None
    """A body that is no JSON: an upload."""
    headers: Mapping[str, str] = field(default_factory=dict)

    def request(self) -> dict[str, Any]:
        """The keyword arguments of httpx."""
        params = {name: _plain(value) for name, value in self.query.items() if value is not None}
        request: dict[str, Any] = {"params": params, "headers": dict(self.headers)}
        if self.body is not None:
            request["content"] = self.body.model_dump_json(by_alias=True, exclude_unset=True)
            request["headers"]["content-type"] = "application/json"
        if self.content is not None:
            request["content"] = self.content
        return request

    def read(self, text: bytes) -> T:
        """The answer from its text."""
        if self.shape is None:
            return None  # type: ignore[return-value]
        answer: T = _adapter(self.shape).validate_json(text)
        return answer


def path_of(*parts: object) -> str:
    """The path of some parts, each percent-encoded: `/`, `%` and dots in names survive."""
    return "".join(f"/{_encoded(str(part))}" for part in parts)


def _encoded(part: str) -> str:
    encoded = quote(part, safe="")
    # A lone dot would be taken for the current directory and vanish from the address.
    return encoded.replace(".", "%2E") if encoded in (".", "..") else encoded


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bool):
        return str(value).lower()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


@cache
def _adapter(shape: Any) -> TypeAdapter[Any]:
    return TypeAdapter(shape)
