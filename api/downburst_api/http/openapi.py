"""What the api's description says beyond its routes: an example for each request, and the key that makes one safe."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI

from downburst_api.border.idempotency import HEADER, LONGEST_KEY


def install(app: FastAPI) -> None:
    """Completes the description when it is asked for."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        described = plain()
        for (method, path), example in EXAMPLES.items():
            operation = described["paths"][path][method.lower()]
            operation["requestBody"]["content"]["application/json"]["example"] = example
        for path, operations in described["paths"].items():
            operation = operations.get("post", {})
            known = operation.setdefault("parameters", []) if operation and path.startswith("/v1/") else None
            if known is not None and KEY not in known:
                known.append(KEY)
        return described

    app.openapi = openapi  # type: ignore[method-assign]


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
    ("POST", "/v1/upstreams"): {
        "upstream": "national",
        "address": "hub.example.org:7370",
        "token": f"dbt1.{'0a' * 32}.what-its-operator-gave",
        "feeds": ["NGRID"],
    },
    ("POST", "/v1/ldm/sources"): _SOURCE,
    ("PUT", "/v1/ldm/sources/{source}"): _SOURCE,
    ("POST", "/v1/ldm/accepts"): {"feeds": "EXP", "pattern": "^model", "host": r"^ldm\.example\.edu$"},
    ("POST", "/v1/ports"): {"port": "ae1", "rate_bps": 10_000_000_000, "first_vlan": 100, "last_vlan": 199},
    ("PATCH", "/v1/ports/{port}"): {"rate_bps": 8_000_000_000},
    ("PATCH", "/v1/circuits/{circuit}"): {"rate_out_bps": 200_000_000},
}
