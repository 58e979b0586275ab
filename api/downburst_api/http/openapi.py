"""Additions to the API's description beyond its routes.

They are: how to sign in, an example of each request and answer, and the key that makes a request safe to repeat.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import FastAPI

from downburst_api.border.idempotency import HEADER, LONGEST_KEY
from downburst_api.border.route_rules import RULES, Rule


def install(app: FastAPI) -> None:
    """Completes the description when it is requested."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        described = plain()
        if "securitySchemes" not in described["components"]:
            complete(described)
            for method, path, operation in _operations(described):
                _show(operation, examples().get(f"{method} {path}"))
        return described

    app.openapi = openapi  # type: ignore[method-assign]


def complete(described: dict[str, Any]) -> None:
    """Adds all but the examples of answers."""
    described["components"]["securitySchemes"] = SECURITY
    schemas = described["components"]["schemas"]
    schemas["Problem"] = PROBLEM
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    described["components"]["responses"] = {"Problem": REFUSED}
    for (method, path), example in EXAMPLES.items():
        operation = described["paths"][path][method.lower()]
        operation["requestBody"]["content"]["application/json"]["example"] = example
    rules = {(method, path.replace(":anytext}", "}")): rule for (method, path), rule in RULES.items()}
    for method, path, operation in _operations(described):
        operation["security"] = _security(rules[method, path])
        operation["responses"] = _answers(operation["responses"])
        if method == "POST" and path.startswith("/v1/"):
            operation.setdefault("parameters", []).append(KEY)


@cache
def examples() -> Mapping[str, Any]:
    """By method and path an answer of the API; recorded from a hub, as `unit.api.write_contract` does."""
    recorded: dict[str, Any] = json.loads((files("downburst_api.http") / "examples.json").read_text())
    return recorded


def _operations(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            yield method.upper(), path, operation


def _answers(answers: dict[str, Any]) -> dict[str, Any]:
    """Refusals by reference; without the framework's own, which the API never sends."""
    known = {status: answer for status, answer in answers.items() if "HTTPValidationError" not in json.dumps(answer)}
    return {
        status: {"$ref": "#/components/responses/Problem"} if answer == REFUSED else answer
        for status, answer in known.items()
    }


def _security(rule: Rule) -> list[dict[str, list[str]]]:
    """A token or a session; nothing for a route open to everyone."""
    return [{"token": []}, {"session": []}] if rule.scope is not None or rule.known else []


def _show(operation: dict[str, Any], example: Any) -> None:
    for status, answer in operation["responses"].items():
        if status.startswith("2") and example is not None:
            for content in answer.get("content", {}).values():
                content["example"] = example


REFUSED: dict[str, Any] = {
    "description": "A problem document: one sentence with the problem and the remedy.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
PROBLEM = {
    "type": "object",
    "title": "Problem",
    "description": "Why a request was refused: one sentence with the problem and the remedy (RFC 9457).",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
    },
}
SECURITY = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "An access token, or the secret of a session that was begun with `bearer`.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "downburst_PORT",
        "description": "A session of a browser; the cookie's name ends in the hub's port.",
    },
}
KEY = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Any text of the caller; a repeated request with the same key is carried out once a day.",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": "^[!-~]+$"},
}
_FEED = {"class": "grid", "retention_hours": 6, "objective_ms": 2_000}
_SOURCE = {
    "source": "conduit",
    "feeds": "CONDUIT",
    "pattern": "[05]$",
    "upstreams": ["idd-a.example.edu", "idd-b.example.edu"],
}
EXAMPLES: Mapping[tuple[str, str], dict[str, Any]] = {
    ("POST", "/v1/session"): {"user": "anna", "password": "a long sentence is easy to keep"},
    ("POST", "/v1/session/link"): {"link": "dbl_3NfE", "user": "anna", "password": "a long sentence is easy to keep"},
    ("PUT", "/v1/session/password"): {"old": "a long sentence is easy to keep", "new": "another long sentence"},
    ("POST", "/v1/users"): {"user": "ben", "role": "site", "site": "unl.edu"},
    ("PATCH", "/v1/users/{user}"): {"role": "operator", "site": None},
    ("POST", "/v1/access-tokens"): {"name": "prometheus", "role": "viewer", "scopes": ["metrics"], "days": 365},
    ("POST", "/v1/access-requests"): {
        "site": "unl.edu",
        "organisation": "University of Nebraska",
        "contact": "weather@unl.example",
        "place": "Lincoln",
        "feeds": ["NGRID"],
        "note": "for the forecast laboratory",
    },
    ("POST", "/v1/access-requests/state"): {"secret": "answer to the request"},
    ("POST", "/v1/access-requests/{number}/approval"): {"answer": "welcome"},
    ("POST", "/v1/access-requests/{number}/refusal"): {"answer": "ask your national hub, which is nearer"},
    ("PUT", "/v1/sites/{site}/endpoint"): {"contact": "night@unl.example", "access_rate_bps": 1e9},
    ("POST", "/v1/sites/{site}/silences"): {"minutes": 120, "reason": "the power is off until noon"},
    ("POST", "/v1/silences"): {"minutes": 60, "reason": "known", "kind": "silence", "feed": "NGRID"},
    ("PUT", "/v1/feeds/{feed}/objectives/{site}"): {"objective_ms": 2_000, "quantile": 0.95, "minutes": 15},
    ("POST", "/v1/sites/{site}/alarm-receivers"): {"receiver": "us", "kind": "mail", "address": "ops@unl.example"},
    ("POST", "/v1/alarm-receivers"): {"receiver": "duty", "kind": "mail", "address": "duty@hub.example"},
    ("POST", "/v1/feeds"): {"feed": "NGRID", **_FEED},
    ("PUT", "/v1/feeds/{feed}"): _FEED,
    ("PATCH", "/v1/feeds/{feed}"): {"objective_ms": 1_000},
    ("PUT", "/v1/feeds/{feed}/pin"): {"transport": "unicast"},
    ("POST", "/v1/feeds/{feed}/what-if"): {"sites": 104, "egress_bps": 200_000_000, "objective_ms": 5_000},
    ("POST", "/v1/sites"): {
        "site": "unl.edu",
        "organisation": "University of Nebraska",
        "place": {"text": "Lincoln", "latitude": 40.8, "longitude": -96.7},
        "allow": ["NGRID", "IDS|DDPLUS"],
    },
    ("PATCH", "/v1/sites/{site}"): {"multicast": False},
    ("POST", "/v1/sites/{site}/tokens"): {"hours": 24},
    ("POST", "/v1/sites/{site}/subscriptions"): {"feed": "NGRID", "pattern": "^Y.*KWBH", "not_pattern": "test"},
    ("POST", "/v1/resends"): {"site": "unl.edu", "feed": "NGRID", "from": "3h", "to": "1h"},
    ("POST", "/v1/probes"): {"site": "unl.edu", "kind": "knee", "rate_bps": 1_000_000_000},
    ("POST", "/v1/probe-schedules"): {
        "site": "unl.edu",
        "kind": "knee",
        "rate_bps": 1_000_000_000,
        "every_h": 24,
        "first_hour": 2,
        "end_hour": 5,
    },
    ("PUT", "/v1/sites/{site}/probe-ceiling"): {"rate_bps": 500_000_000, "bytes_per_day": 5_000_000_000},
    ("POST", "/v1/upstreams"): {
        "upstream": "national",
        "address": "hub.example.org:7370",
        "token": f"dbt1.{'0a' * 32}.what-its-operator-gave",
        "feeds": ["NGRID"],
    },
    ("POST", "/v1/ldm/sources"): _SOURCE,
    ("PUT", "/v1/ldm/sources/{source}"): _SOURCE,
    ("POST", "/v1/ldm/accepts"): {"feeds": "EXP", "pattern": "^model", "host": r"^ldm\.example\.edu$"},
    ("PUT", "/v1/tcp-profiles/{profile}"): {
        "prefix": "192.0.2.0/24",
        "mode": "trial",
        "knobs": {"congestion": "bbr", "send_buffer_bytes": 8_388_608, "pacing_bps": 50_000_000, "connections": 4},
    },
    ("PUT", "/v1/relays/{relay}"): {
        "address": "relay.example.edu:7379",
        "fan_out": "group",
        "sites": ["unl.edu"],
        "feeds": ["NGRID"],
    },
    ("POST", "/v1/ports"): {"port": "ae1", "rate_bps": 10_000_000_000, "first_vlan": 100, "last_vlan": 199},
    ("PATCH", "/v1/ports/{port}"): {"rate_bps": 8_000_000_000},
    ("PUT", "/v1/topology"): {
        "domains": [{"name": "campus"}],
        "switches": [{"name": "chic", "domain": "campus", "ports": ["chic-1", "chic-2"]}],
        "links": [
            {
                "name": "up",
                "a": "ae1",
                "z": "chic-1",
                "az_bps": 10_000_000_000,
                "za_bps": 10_000_000_000,
                "tags": {"kind": "vlan", "first": 100, "last": 199},
            }
        ],
    },
    ("POST", "/v1/topology/window"): {"to": "unl.edu", "rate_out_bps": 2_000_000_000, "minutes": 45},
    ("POST", "/v1/topology/rate"): {"to": "unl.edu", "begin": "+1h", "end": "+2h"},
    ("PATCH", "/v1/circuits/{circuit}"): {"rate_out_bps": 200_000_000},
    ("PUT", "/v1/circuit-offers/{offer}"): {
        "hub_port": "ae1",
        "ports": ["unl-ae1"],
        "rates_bps": [100_000_000, 500_000_000],
        "setup_s": 1,
        "circuit_hours_a_day": 8,
        "orders_a_day": 200,
    },
    ("PUT", "/v1/circuit-providers/{provider}"): {
        "url": "https://nsi.example.net/soap/connection/provider",
        "provider_nsa": "urn:ogf:network:example.net:2026:nsa:supa",
        "requester_nsa": "urn:ogf:network:hub.example:2026:nsa:downburst",
        "dialect": "p2ps",
        "certificate": "/etc/downburst/nsi/hub.pem",
        "key": "/etc/downburst/nsi/hub.key",
        "authorities": "/etc/downburst/nsi/authorities.pem",
    },
}
