"""Settings of access, and what all sections of settings share."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """Part of the settings; a name that it does not know is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AccessSettings(Section):
    """Who may look without a login, and how long a login lasts."""

    without_login: Literal["nothing", "latency", "page"] = Field(
        default="nothing",
        description="What anybody sees: nothing; latency, volume and who feeds whom; or the whole page, for trials. "
        "Contacts and addresses never.",
    )
    session_hours: float = Field(
        default=336.0, gt=0, le=8_784, description="Hours until a user has to sign in again. A fortnight."
    )
    credential_days: float = Field(
        default=90.0,
        gt=0,
        le=7_320,
        description="Days that a site's credential lasts; its receiver has it replaced when a third is left, so it "
        "may be away for a month. What leaks with a disk or a backup opens nothing after a quarter of a year.",
    )
    audit_days: float = Field(
        default=1_100.0, gt=0, description="Days that the audit is kept. Three years and a little."
    )
