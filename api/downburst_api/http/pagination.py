"""Pagination, the same for all lists: `limit`, `cursor`, and the next page's address.

A cursor is the key of the last item of a page, so that insertions and deletions in between neither hide an item nor
show one twice. The next page's address is in the header `Link` (RFC 8288) of every list, and its cursor is `next`
where the answer is a document with `items`.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query, Request, Response

from downburst.foundation.errors import BadInput
from downburst_contract.base import Answer

Item = TypeVar("Item", bound=Answer)
Following = TypeVar("Following", str | None, int | None)
Cursor = Annotated[
    str | None, Query(max_length=500, description="Start of the page: `next` of the previous page, or its `Link`.")
]


class Page:
    """The requested page of a list that is in memory; all of it if no limit is given."""

    def __init__(
        self,
        asked: Request,
        answer: Response,
        cursor: Cursor = None,
        limit: Annotated[
            int | None, Query(ge=1, le=1000, description="The maximum number of items; all if left out.")
        ] = None,
    ) -> None:
        self._asked = asked
        self._answer = answer
        self._cursor = cursor
        self._limit = limit

    def of(self, items: Iterable[Item], key: str, *, falling: bool = False) -> list[Item]:
        """The page of items that rise, or fall, by a key."""
        # Databases differ in how they sort names, and a cursor needs one order.
        of = attrgetter(key)
        listed = sorted(items, key=of, reverse=falling)
        if self._cursor is not None and listed:
            (last,) = read_cursor(self._cursor, type(of(listed[0])))
            listed = [item for item in listed if (of(item) < last if falling else of(item) > last)]
        if self._limit is None:
            return listed
        return page_of(listed, self._limit, (key,), self._answer, self._asked)


class NewestPage:
    """The requested page of a list with its newest items first, by falling numbers."""

    def __init__(
        self,
        asked: Request,
        answer: Response,
        cursor: Cursor = None,
        limit: Annotated[int, Query(ge=1, le=1000, description="The maximum number of items.")] = 100,
    ) -> None:
        self._asked = asked
        self._answer = answer
        self._limit = limit
        self.before: int | None = None if cursor is None else read_cursor(cursor, int)[0]
        self.to_read = limit + 1
        """One more than is shown, to find out whether another page follows."""

    def of(self, items: Sequence[Item], key: str) -> list[Item]:
        """The page of items read with these bounds."""
        return page_of(items, self._limit, (key,), self._answer, self._asked)


class Document:
    """A page of a list as a document with `items` and `next`."""

    def __init__(self, asked: Request, answer: Response) -> None:
        self._asked = asked
        self._answer = answer

    def lead_to(self, following: Following, *, by: str = "cursor") -> Following:
        """The cursor of the next page, also set in the answer's headers; None: there is none."""
        if following is not None:
            _lead_on(self._answer, self._asked, following, by)
        return following


Paged = Annotated[Page, Depends(Page)]
Documented = Annotated[Document, Depends(Document)]
NewestPaged = Annotated[NewestPage, Depends(NewestPage)]


def page_of(items: Sequence[Item], limit: int, key: Sequence[str], answer: Response, asked: Request) -> list[Item]:
    """The first `limit` of the items, with the begin of the next page if there are more."""
    page = list(items[:limit])
    if len(items) > limit:
        _lead_on(answer, asked, write_cursor(*(getattr(page[-1], name) for name in key)))
    return page


def _lead_on(answer: Response, asked: Request, cursor: str | int, by: str = "cursor") -> None:
    url = asked.url.include_query_params(**{by: cursor})
    answer.headers["link"] = f'<{url.path}?{url.query}>; rel="next"'


def write_cursor(*key: str | int) -> str:
    """A key as opaque text."""
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def read_cursor(cursor: str, *kinds: type) -> tuple[Any, ...]:
    """The key in a cursor."""
    try:
        key = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError):
        key = None
    fits = isinstance(key, list) and [type(part) for part in key] == list(kinds)
    if not fits or not all(_is_usable(part) for part in key):
        raise BadInput(
            f"{cursor!r} is not a cursor of this list; take `next` or the header Link of the previous page"
        )
    return tuple(key)


def _is_usable(part: str | int) -> bool:
    """True if a ledger can search for it: JSON may hold NULs and lone surrogates."""
    if isinstance(part, int):
        return 0 <= part < LARGEST
    return "\0" not in part and part == part.encode(errors="ignore").decode()


LARGEST = 2**53
