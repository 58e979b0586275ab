"""JSON schemas of the objects that an API server knows, made from its own description in kubeconform's format."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Schema = dict[str, Any]


def write_schemas(description: Schema, folder: Path) -> int:
    """Writes a file for each kind of the server's `/openapi/v2`; returns their number.

    Names are those of kubeconform's `{{.ResourceKind}}{{.KindSuffix}}.json`. A field that the server does not know is
    refused, as it is where a server is asked with `fieldValidation=Strict`.
    """
    definitions = {name: _strict(schema) for name, schema in description["definitions"].items()}
    definitions = {name: QUANTITY if name.endswith("resource.Quantity") else it for name, it in definitions.items()}
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for name, schema in description["definitions"].items():
        for kind in schema.get("x-kubernetes-group-version-kind", []):
            (folder / _file_name(kind)).write_text(json.dumps(_whole(definitions, name, kind)))
            written += 1
    return written


def _file_name(kind: Schema) -> str:
    parts = (kind["kind"].lower(), kind["group"].split(".")[0], kind["version"].lower())
    return "-".join(part for part in parts if part) + ".json"


def _whole(definitions: Schema, name: str, kind: Schema) -> Schema:
    """One kind with all that it refers to."""
    schema: Schema = json.loads(json.dumps(definitions[name]))
    fields = schema.get("properties", {})
    if "apiVersion" in fields:
        fields["apiVersion"] = {"enum": [f"{kind['group']}/{kind['version']}".lstrip("/")]}
    if "kind" in fields:
        fields["kind"] = {"enum": [kind["kind"]]}
    needed: Schema = {}
    waiting = list(_references(schema))
    while waiting:
        other = waiting.pop()
        if other not in needed:
            needed[other] = definitions[other]
            waiting += _references(definitions[other])
    return schema | {"definitions": needed}


def _strict(schema: Any) -> Any:
    """A definition in terms of JSON Schema, with no fields beside its own."""
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string"):
        return {"type": ["string", "integer"]}
    made = {word: schema[word] for word in WORDS if word in schema}
    if "properties" in made:
        made["properties"] = {name: _strict(field) for name, field in made["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            made.setdefault("additionalProperties", False)
    for word in ("items", "additionalProperties"):
        if word in made:
            made[word] = _strict(made[word])
    return made


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].removeprefix("#/definitions/")
        for inner in schema.values():
            yield from _references(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _references(inner)


WORDS = ("type", "properties", "required", "items", "additionalProperties", "enum", "pattern", "minimum", "maximum")
QUANTITY: Schema = {"type": ["string", "number"]}
