"""Values that are refused before any route: characters that a ledger can't store, numbers beyond its integers."""

import json
import math
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Union, get_args, get_origin
from urllib.parse import unquote_to_bytes

from annotated_types import Ge, Gt, Le, Lt
from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.types import Scope

from downburst.foundation.errors import BadInput


def check_values(scope: Scope, path: Mapping[str, str]) -> None:
    """Refuses a NUL in path, query or headers: PostgreSQL stores none, and no name has one.

    `path`: the parameters of the path by name, if the route has any. Ids of products have a rule with a clearer
    sentence.
    """
    parts = [part for name, part in path.items() if name != "product_id"] if path else [scope["path"]]
    if any("\0" in part for part in parts):
        raise _with_nul("the path")
    if b"\0" in unquote_to_bytes(scope["query_string"]):
        raise _with_nul("the query")
    name = next((name for name, value in scope["headers"] if b"\0" in value), None)
    if name is not None:
        raise _with_nul(f"the header {name.decode('latin-1')}")


def check_body(body: bytes) -> None:
    """Refuses a NUL in any text of a JSON document; bodies of other types are left to the route."""
    if b"\\u0000" not in body:
        return
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return
    if any("\0" in text for text in _texts(document)):
        raise _with_nul("the body")


def unbounded(routers: Iterable[APIRouter]) -> list[str]:
    """Numbers in paths, queries and headers that may exceed the ledger's integers, as `GET /path: name`."""
    return sorted(
        f"{min(route.methods or {''})} {route.path}: {parameter.alias}"
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute)
        for parameter in _parameters(route.dependant)
        if _is_number(parameter.field_info.annotation) and not _is_bounded(parameter.field_info.metadata)
    )


def _with_nul(where: str) -> BadInput:
    return BadInput(f"{where} has a NUL character; remove it")


def _texts(document: Any) -> Iterator[str]:
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, list):
            waiting += value


def _parameters(dependant: Dependant) -> Iterator[Any]:
    yield from (*dependant.path_params, *dependant.query_params, *dependant.header_params)
    for inner in dependant.dependencies:
        yield from _parameters(inner)


def _is_number(annotation: Any) -> bool:
    if get_origin(annotation) in (Union, types.UnionType):
        return any(_is_number(one) for one in get_args(annotation))
    return annotation in (int, float)


def _is_bounded(metadata: Iterable[object]) -> bool:
    least, most = -math.inf, math.inf
    for limit in metadata:
        match limit:
            case Ge(ge=bound) | Gt(gt=bound):
                least = bound  # type: ignore[assignment]
            case Le(le=bound) | Lt(lt=bound):
                most = bound  # type: ignore[assignment]
            case _:
                pass
    return least >= -LARGEST and most <= LARGEST


LARGEST = 2**63 - 1
"""Integers of both databases have 64 bits."""
