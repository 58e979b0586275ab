"""Shared definitions of all sections of the settings."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Part of the settings; an unknown name is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)
