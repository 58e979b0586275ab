"""Settings of the port for LDMs."""

import re

from pydantic import Field, field_validator

from downburst.settings.addresses import split_address
from downburst.settings.section import Section


class LdmSettings(Section):
    """The port for LDMs that ask this hub for products or push to it."""

    listen: tuple[str, ...] = Field(
        default=(),
        description="HOST:PORT for LDMs, such as [::]:388 for all; 388 is the default port. Empty: no such "
        "port, because LDM identifies hosts only by their addresses.",
    )
    rtstats: str = Field(
        default="",
        description="HOST[:PORT] of a collector of rtstats lines, which gets latencies at this hub each minute, "
        "as from LDMs. Empty: none.",
    )
    max_clients: int = Field(
        default=256,
        ge=1,
        le=100_000,
        description="Connections of LDMs at a time. The default is the limit of LDM itself.",
    )

    @field_validator("listen")
    @classmethod
    def _with_port(cls, listen: tuple[str, ...]) -> tuple[str, ...]:
        whole = tuple(one if re.search(r":\d+$", one) and not one.endswith("]") else f"{one}:388" for one in listen)
        for one in whole:
            split_address(one)
        return whole
