"""What can go wrong with a call.

HubError
├── BadAddress    no URL of a hub
├── Unreachable   nothing listens there
├── BrokenOff     the connection ended before the answer did
└── Problem       the hub refused, with its reason
"""

from collections.abc import Mapping
from typing import Any

import httpx


class HubError(Exception):
    """A call that was not answered as hoped."""


class BadAddress(HubError):
    """The address is no URL of a hub."""


class Unreachable(HubError):
    """No hub answers there."""


class BrokenOff(HubError):
    """The connection ended before the answer did; whether a change took place is not known."""


class Problem(HubError):
    """The hub's refusal: one sentence with the problem and the remedy (RFC 9457)."""

    def __init__(self, answer: httpx.Response) -> None:
        document = _document(answer)
        self.status = answer.status_code
        self.is_problem_document = "detail" in document
        """False: a proxy answered, or something that is no hub."""
        self.code = str(document.get("code", ""))
        """A word for programs."""
        self.members = document
        """All that the document says, which depends on the code."""
        plain = f"{answer.url} answered {answer.status_code} {answer.reason_phrase}; is this a Downburst hub?"
        self.detail = str(document.get("detail", plain))
        super().__init__(self.detail)


def _document(answer: httpx.Response) -> Mapping[str, Any]:
    try:
        document = answer.json()
    except ValueError:
        return {}
    return document if isinstance(document, Mapping) else {}
