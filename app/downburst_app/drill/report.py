"""The findings of a drill."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """One requirement of a restored hub, and the result of its check."""

    about: str
    good: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Report:
    """All findings of one drill, in order."""

    backup: str
    hub: str
    made_at: str
    seconds: float
    findings: tuple[Finding, ...]

    @property
    def good(self) -> bool:
        """True if the backup makes a working hub."""
        return bool(self.findings) and all(finding.good for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """The report as a document."""
        return {**asdict(self), "good": self.good}
