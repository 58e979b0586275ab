"""Conditional changes: `ETag` on resources, `If-Match` on the requests that change them (RFC 9110).

A tag is computed from the api's view of a feed, site, subscription or pin, so it is the same after a restart and on
another hub. It is compared in the transaction that makes the change. Without `If-Match` a change is made
unconditionally.
"""

import hashlib
import json
from typing import Annotated, TypeVar

from fastapi import Depends, Header, Response

from downburst.foundation.errors import ChangedMeanwhile
from downburst_contract.base import Answer

Tagged = TypeVar("Tagged", bound=Answer)


class IfMatch:
    """A change's condition on the state before it."""

    def __init__(
        self,
        if_match: Annotated[
            str | None,
            Header(
                max_length=1000, description="The `ETag` of the object as it was read: refused if it changed since."
            ),
        ] = None,
    ) -> None:
        self._tags = None if if_match is None else [tag.strip() for tag in if_match.split(",")]

    def check(self, what: str, shown: Answer | None) -> None:
        """Refuses if the current state does not match the tag; None: the object does not exist."""
        if self._tags is None:
            return
        if shown is None or not ("*" in self._tags or etag(shown) in self._tags):
            now = "no longer exists" if shown is None else "was changed by another request"
            raise ChangedMeanwhile(f"{what} {now}; read it again, and repeat the change if it is still wanted")


Unchanged = Annotated[IfMatch, Depends(IfMatch)]


def etag(shown: Answer) -> str:
    """The tag of a resource."""
    text = json.dumps(shown.model_dump(by_alias=True), sort_keys=True, default=str)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def tagged(shown: Tagged, answer: Response) -> Tagged:
    """The resource, with its tag in the answer's headers."""
    answer.headers["etag"] = etag(shown)
    return shown
