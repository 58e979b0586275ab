"""Lists page by page, all of them in one way: `limit`, `cursor`, and where the next page is.

A cursor is the key of the last item of a page, so that what comes and goes meanwhile neither hides an item nor shows
one twice. The next page's address is in the header `Link` (RFC 8288) of every list, and its cursor is `next` where
the answer is a document with `items`.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from fastapi import Query, Request, Response

from downburst.errors import BadInput

Cursor = Annotated[
    str | None, Query(max_length=500, description="Where the page begins: from `next`, or from `Link`.")
]
Limit = Annotated[int | None, Query(ge=1, le=1000, description="The most items of a page; all if it is left out.")]
Item = dict[str, Any]


def page_of(items: Sequence[Item], limit: int, key: Sequence[str], answer: Response, asked: Request) -> list[Item]:
    """The first `limit` of items that were read one beyond it; tells where the next page begins."""
    page = list(items[:limit])
    if len(items) > limit:
        cursor = write_cursor(*(page[-1][name] for name in key))
        answer.headers["link"] = (
            f'<{asked.url.path}?{asked.url.include_query_params(cursor=cursor).query}>; rel="next"'
        )
    return page


def paged(
    items: Iterable[Item],
    key: Sequence[str],
    *,
    cursor: str | None,
    limit: int | None,
    answer: Response,
    asked: Request,
) -> list[Item]:
    """A page of a list that is known as a whole and rises by its key."""
    listed = list(items)
    if cursor is not None:
        kinds = [type(listed[0][name]) for name in key] if listed else []
        after = read_cursor(cursor, *kinds) if kinds else ()
        listed = [item for item in listed if tuple(item[name] for name in key) > after]
    return listed if limit is None else page_of(listed, limit, key, answer, asked)


def write_cursor(*key: str | int) -> str:
    """A key as text that nobody is meant to read."""
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def read_cursor(cursor: str, *kinds: type) -> tuple[Any, ...]:
    """The key behind a cursor."""
    try:
        key = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError):
        key = None
    if not isinstance(key, list) or [type(part) for part in key] != list(kinds):
        raise BadInput(f"{cursor!r} is no cursor of this list; take `next` or the header Link of the page before")
    return tuple(key)
