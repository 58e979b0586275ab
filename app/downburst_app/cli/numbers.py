"""Options with a number that need not be whole."""

from typing import Any

import typer


def real_number(*names: str, least: float, most: float, help: str) -> Any:  # noqa: A002
    """An option for `Annotated[float, ...]`, and its limits.

    Two limits refuse `nan` and `inf` as well, which no request and no timer can hold.
    """
    return typer.Option(*names, min=least, max=most, help=help)


A_DAY_S = 86_400
A_YEAR_S = 366 * A_DAY_S
A_YEAR_HOURS = 366 * 24
A_YEAR_MINUTES = 60 * A_YEAR_HOURS
"""Leap years."""
