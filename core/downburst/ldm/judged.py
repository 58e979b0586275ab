"""What a hub's node says of the patterns in LDM's files: refused, or matching other ids than LDM's."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from downburst.ldm.server_file import Accept, Allow, Request, Statement


@dataclass(frozen=True, slots=True)
class Judged:
    """A node's word on a pattern."""

    refused: str | None = None
    """Why a hub does not take it; LDM may."""
    differs: str | None = None
    """Where it matches other ids than LDM's."""


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
    """By pattern, what ``downburst-node patterns`` printed."""
    lines = [json.loads(line) for line in printed.splitlines()]
    return {line["pattern"]: Judged(line["refused"], line["differs"]) for line in lines}
