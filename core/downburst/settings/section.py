"""What all sections of the settings share."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Part of the settings; a name that it does not know is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)
