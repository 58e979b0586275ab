"""YAML of plain values, for people to read and edit."""

import json
import re
from typing import Any


def yaml_text(value: dict[str, Any]) -> str:
    """A document of mappings, lists and plain values. Texts that could be read as something else are quoted."""
    return "\n".join(_lines(value, "")) + "\n"


def _lines(value: Any, indent: str) -> list[str]:
    if isinstance(value, dict):
        return [line for key, inner in value.items() for line in _entry(f"{indent}{_scalar(key)}:", inner, indent)]
    lines: list[str] = []
    for item in value:
        if not _is_long(item):
            lines.append(f"{indent}- {_scalar(item)}")
            continue
        first, *rest = _lines(item, indent + "  ")
        lines += [f"{indent}- {first.strip()}", *rest]
    return lines


def _entry(key: str, value: Any, indent: str) -> list[str]:
    if not _is_long(value):
        return [f"{key} {_scalar(value)}"]
    return [key, *_lines(value, indent + "  ")]


def _is_long(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _scalar(value: Any) -> str:
    """One value. JSON's texts are YAML's double-quoted ones."""
    if isinstance(value, str) and PLAIN.fullmatch(value) and value.lower() not in WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)


PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./ -]*[A-Za-z0-9_./-]|[A-Za-z]")
WORDS = {"y", "n", "yes", "no", "true", "false", "on", "off", "null"}
