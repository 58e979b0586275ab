"""The rows of an answer as comma-separated values, on request."""

import csv
import io
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response


class Form(StrEnum):
    """How an answer is written."""

    JSON = "json"
    CSV = "csv"


def form_of(
    request: Request,
    form: Annotated[
        Form | None, Query(alias="format", description="`csv` for a table; the header Accept says the same.")
    ] = None,
) -> Form:
    """The requested format, from the parameter or else from the header."""
    if form is not None:
        return form
    return Form.CSV if request.headers.get("accept", "").startswith("text/csv") else Form.JSON


Asked = Annotated[Form, Depends(form_of)]


def csv_answer(name: str, rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> Response:
    """A file of rows with a header line; unknown values are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(_shown(row.get(column)) for column in columns)
    file = "".join(letter if letter.isalnum() or letter in "-._" else "-" for letter in name)
    headers = {"content-disposition": f'attachment; filename="{file}.csv"'}
    return Response(text.getvalue(), media_type="text/csv", headers=headers)


def _shown(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return _plain_text(value) if isinstance(value, str) else value


def _plain_text(text: str) -> str:
    """Prefixes text that looks like a formula with an apostrophe, as spreadsheets would run it; gets no numbers."""
    return f"'{text}" if text.startswith(_FORMULA) else text


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
