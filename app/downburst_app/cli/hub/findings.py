"""The results of `downburst doctor`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    about: str
    state: str
    """`ok`; `weak`: it works, though less well; `bad`: a part won't work."""
    sentence: str
    remedy: str = ""


Found = tuple[str, str, str] | tuple[str, str]
"""State, sentence and remedy."""
OK, WEAK, BAD = "ok", "weak", "bad"
