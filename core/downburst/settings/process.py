"""The processes of a hub on its machine: name, directory, addresses, patience."""

from pathlib import Path
from typing import Self

from pydantic import BaseModel, Field, field_validator, model_validator

from downburst.settings.addresses import split_address


class ProcessSettings(BaseModel):
    """The processes of a hub on its machine. These names stand at the top level of the file."""

    name: str = Field(
        default="hub",
        description="Name of this hub, sent to sites and other hubs: printable ASCII, unique in a tree.",
        pattern=r"^[ -~]{1,63}$",
    )
    data_dir: Path = Field(
        default=Path("downburst-data"),
        description="Data directory: ledger, product log, spool.",
    )
    http: str = Field(
        default="127.0.0.1:7371",
        description="HOST:PORT of the api and the page. Loopback: it speaks HTTP, so a proxy adds TLS for others.",
    )
    sites: str = Field(
        default="127.0.0.1:7370",
        description="HOST:PORT where sites connect (TLS, credentials). Loopback unless set to 0.0.0.0:7370 or "
        "[::]:7370, so that a trial opens no public port.",
    )
    origin: str = Field(
        default="", description="Origin given to products without one; empty: this machine's host name."
    )
    node: Path | None = Field(
        default=None, description="The downburst-node binary; none: looked for (see `downburst node-path`)."
    )
    dashboard_dir: Path | None = Field(
        default=None, description="The built page; none: looked for beside this program and in the source tree."
    )
    guide_dir: Path | None = Field(
        default=None,
        description="The built documentation; none: looked for beside this program and in the source tree.",
    )
    node_answer_s: float = Field(
        default=30.0,
        gt=0,
        description="Seconds the node may take to answer a question. A full disk makes a node slow, not dead.",
    )
    start_step_s: float = Field(
        default=60.0,
        gt=0,
        description="Seconds that one step of a start may wait for a disk, the ledger's server, Kafka or the node; "
        "then the start ends and names the step. A change of the ledger's schema may take longer.",
    )
    reserve_bytes: int = Field(
        default=64_000_000,
        ge=0,
        le=10**12,
        description="Bytes of the data directory's disk that are held in reserve, so that a hub starts on a full "
        "one; 0: none. A start writes a few.",
    )

    @field_validator("http", "sites")
    @classmethod
    def _is_address(cls, text: str) -> str:
        split_address(text)
        return text

    @model_validator(mode="after")
    def _absolute(self) -> Self:
        object.__setattr__(self, "data_dir", self.data_dir.expanduser().absolute())
        return self
