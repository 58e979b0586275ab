"""Declarations as YAML."""

import math
from typing import Any

import yaml  # type: ignore[import-untyped]


def yaml_text(document: dict[str, Any]) -> str:
    """The document for people to read and edit: one line for each text, of any length."""
    return str(yaml.dump(document, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=math.inf))


class _Plain(yaml.SafeDumper):  # type: ignore[misc]
    """Indents lists, and writes repeated values out in place of references."""

    def ignore_aliases(self, _data: object) -> bool:
        return True

    def increase_indent(self, **how: bool) -> None:
        super().increase_indent(**how | {"indentless": False})
