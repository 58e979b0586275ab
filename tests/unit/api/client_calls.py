"""The functions of `downburst_client.calls`, made from the routes."""

import inspect
import re
import types
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel

CALLS = Path(__file__).parents[3] / "client/downburst_client/calls.py"


def api_routes(app: FastAPI) -> list[APIRoute]:
    """Every route in the API description."""
    found: list[APIRoute] = []
    owners: list[Any] = [app.router]
    for owner in owners:
        found += [route for route in owner.routes if isinstance(route, APIRoute) and route.include_in_schema]
        owners += [inner for route in owner.routes if (inner := getattr(route, "original_router", None)) is not None]
    return found


def method_of(route: APIRoute) -> str:
    """The method of a route; each has one."""
    return next(iter(route.methods or ()))


def calls_text(app: FastAPI) -> str:
    """The module's text before it is formatted."""
    names: set[str] = set()
    modules: set[str] = set()
    shaped = [route for route in api_routes(app) if route.path not in _WITHOUT_SHAPE]
    shaped.sort(key=lambda one: (one.path, method_of(one)))
    functions = [_function(route, names, modules) for route in shaped]
    imports = [f"from {module} import {name}" for module, name in (one.rsplit(".", 1) for one in sorted(modules))]
    return "\n".join([_HEAD, "", *imports, "", "", "\n\n".join(functions)])


def _function(route: APIRoute, names: set[str], modules: set[str]) -> str:
    method = method_of(route)
    name = _name(route, names)
    upload = "{product_id:anytext}" in route.path
    body = [
        f"body: {_type(field.field_info.annotation, modules)}{_default(field)}"
        for field in route.dependant.body_params
    ]
    parts = [f"{part}: {'int' if part in _NUMBERS else 'str'}" for part in re.findall(r"\{(\w+)", route.path)]
    query = list(_query(route, modules))
    asked = [*parts, *(["content: bytes"] if upload else []), *body]
    keywords = [f"{one}: {kind}{default}" for one, _, kind, default in query]
    if upload:
        keywords.append("headers: dict[str, str] | None = None")
    if "if_match" in _headers(route):
        keywords.append("if_match: str | None = None")
    signature = ", ".join([*asked, *(["*", *keywords] if keywords else [])])
    kind = "None" if route.response_model is None else _type(route.response_model, modules)
    path = ", ".join(
        f'"{part}"' if not part.startswith("{") else re.findall(r"\w+", part)[0] for part in route.path.split("/")[1:]
    )
    given = [f'"{method}"', f"path_of({path})", kind]
    if query:
        given.append("query={" + ", ".join(f'"{alias}": {one}' for one, alias, _, _ in query) + "}")
    if body:
        given.append("body=body")
    if upload:
        given += ["content=content", "headers=headers or {}"]
    if "if_match" in _headers(route):
        given.append('headers={"if-match": if_match} if if_match else {}')
    doc = (inspect.getdoc(route.endpoint) or "").replace('"""', "")
    indented = doc.replace("\n", "\n    ").replace("\n    \n", "\n\n")
    closing = '"""' if "\n" not in doc else '\n    """'
    return (
        f'def {name}({signature}) -> Call[{kind}]:\n    """{indented}{closing}\n    return Call({", ".join(given)})\n'
    )


def _name(route: APIRoute, names: set[str]) -> str:
    name = _NAMES.get((method_of(route), route.path), route.name)
    assert name not in names, f"two routes are called {name}; name one in client_calls.py"
    names.add(name)
    return name


def _query(route: APIRoute, modules: set[str]) -> Iterator[tuple[str, str, str, str]]:
    """Name, wire name, type and default of each parameter; the hub chooses values that are omitted."""
    for dependant in (route.dependant, *route.dependant.dependencies):
        for field in dependant.query_params:
            info = field.field_info
            if info.deprecated or field.alias == "format":
                continue
            needed = info.is_required()
            kind = _type(info.annotation, modules)
            optional = kind if needed or kind.endswith("| None") else f"{kind} | None"
            yield field.name, field.alias, optional, "" if needed else " = None"


def _headers(route: APIRoute) -> set[str]:
    return {field.name for one in (route.dependant, *route.dependant.dependencies) for field in one.header_params}


def _default(field: Any) -> str:
    return "" if field.field_info.is_required() else " = None"


def _type(kind: Any, modules: set[str]) -> str:  # noqa: PLR0911 - a case each
    """The source text of a type; adds the required imports to `modules`."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " | ".join(_type(one, modules) for one in inner)
    if origin is Literal:
        modules.add("typing.Literal")
        return f"Literal[{', '.join(repr(one).replace(chr(39), chr(34)) for one in inner)}]"
    if origin is list:
        return f"list[{_type(inner[0], modules)}]"
    if kind is type(None):
        return "None"
    if hasattr(kind, "__metadata__"):
        return _type(inner[0], modules)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        package, module = kind.__module__.rsplit(".", 1)
        modules.add(f"{package}.{module}")
        return f"{module}.{kind.__name__}"
    if isinstance(kind, type) and issubclass(kind, Enum):
        modules.add(f"{kind.__module__}.{kind.__name__}")
    return str(kind.__name__)


_HEAD = '''"""A function for each route of the API: what it takes is asked, what it returns is sent by a hub.

Generated from the routes by `unit.api.write_contract`; a test compares. Not to be edited.
"""

from downburst_client.call import Call, path_of'''
_NUMBERS = ("number", "subscription", "resend", "circuit", "probe")
_WITHOUT_SHAPE = ("/metrics", "/v1/events", "/v1/circuits.ics")
_NAMES = {
    ("GET", "/v1/latency"): "list_latencies",
    ("GET", "/v1/overview"): "show_overview",
    ("POST", "/v1/access-tokens"): "add_access_token",
    ("GET", "/v1/access-tokens"): "list_access_tokens",
    ("DELETE", "/v1/access-tokens/{number}"): "revoke_access_token",
}
