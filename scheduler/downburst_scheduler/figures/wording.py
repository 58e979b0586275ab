"""Figures as people read them in reasons and tables."""


def megabits(rate_bps: float) -> str:
    """A rate for people, with three significant digits."""
    value, unit = (rate_bps / 1e6, "Mb/s") if rate_bps >= 1e5 else (rate_bps / 1e3, "kb/s")
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {unit}"


def duration(milliseconds: float) -> str:
    """A duration for people: milliseconds below 0.1 s, seconds above."""
    if milliseconds < 100:
        return f"{milliseconds:.3g} ms"
    seconds = milliseconds / 1e3
    return f"{seconds:.0f} s" if seconds >= 10 or seconds == int(seconds) else f"{seconds:.2f} s"


def sites_of(count: float) -> str:
    """So many sites."""
    return "1 site" if count == 1 else f"{count:g} sites"


def some(reasons: list[str], *, separator: str = ", ") -> str:
    """The first three of them, and how many more there are."""
    told = [*reasons[:3], *([f"and {len(reasons) - 3} more"] if len(reasons) > 3 else [])]
    return separator.join(told)
