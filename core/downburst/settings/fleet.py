"""Whether and how the senders of a hub are run by themselves: a section of the hub's settings."""

from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class FleetSettings(BaseModel):
    """The senders that `downburst fleet` runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["none", "children", "kubernetes"] = Field(
        default="none",
        description="Where senders run: nowhere, on this machine as child processes of `downburst fleet`, or in "
        "Kubernetes.",
    )
    at_least: int = Field(default=1, ge=0, le=100, description="Minimum number of senders.")
    at_most: int = Field(default=4, ge=0, le=100, description="Maximum number of senders; it bounds the cost.")
    sender_bps: float = Field(
        default=4e8,
        gt=0,
        description="Bits per second that one sender can send on its machine; 0.7 of it are used. Measure yours.",
    )
    shrink_after_s: float = Field(
        default=900.0,
        ge=0,
        description="Seconds that fewer must suffice before one is removed. Pauses between forecast runs are shorter "
        "than the default.",
    )
    step_s: float = Field(default=5.0, gt=0, description="Seconds between two checks.")
    first_port: int = Field(
        default=7380,
        ge=1024,
        le=65_000,
        description="Of child processes: sites reach sender N at this port plus 2 N, its health is at the next one.",
    )
    manifest: Path | None = Field(
        default=None, description="The workload of senders that the chart made, a StatefulSet in YAML or JSON."
    )
    owner: str = Field(
        default="", description="The Deployment that the senders belong to: they are removed with it. Empty: none."
    )

    @model_validator(mode="after")
    def _can_be_had(self) -> Self:
        if self.at_most < self.at_least:
            raise ValueError(f"at_most ({self.at_most}) is less than at_least ({self.at_least})")
        if self.kind == "kubernetes" and self.manifest is None:
            raise ValueError("a fleet in Kubernetes needs the workload of its senders (manifest)")
        return self
