"""The node's verdict on patterns in LDM's files: refused, or matching other ids than in LDM."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from downburst.ldm.server_file import Accept, Allow, Request, Statement


@dataclass(frozen=True, slots=True)
class Judged:
    """A node's verdict on a pattern."""

    refused: str | None = None
    """The reason why a hub refuses it; LDM may accept it."""
    differs: str | None = None
    """The ids on which its matches differ from LDM's."""


def patterns_of(statements: Sequence[Statement]) -> list[str]:
    """The patterns of all statements, each once."""
    found: list[str | None] = []
    for one in statements:
        match one:
            case Request():
                found.append(one.pattern)
            case Allow():
                found += [one.host, one.ok, one.not_ok]
            case Accept():
                found += [one.pattern, one.host]
    return list(dict.fromkeys(pattern for pattern in found if pattern))


def judgements(printed: str) -> dict[str, Judged]:
    """The output of ``downburst-node patterns`` by pattern."""
    lines = [json.loads(line) for line in printed.splitlines()]
    return {line["pattern"]: Judged(line["refused"], line["differs"]) for line in lines}
