"""What a drill found."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a restored hub needs, and whether it has it."""

    about: str
    good: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Report:
    """All findings of one drill, in the order in which they were made."""

    backup: str
    hub: str
    made_at: str
    seconds: float
    findings: tuple[Finding, ...]

    @property
    def good(self) -> bool:
        """Whether the backup makes a hub."""
        return bool(self.findings) and all(finding.good for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """The report as a document."""
        return {**asdict(self), "good": self.good}
