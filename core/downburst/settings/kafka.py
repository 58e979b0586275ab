"""The brokers between several processes of a hub: a section of the hub's settings."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class KafkaSettings(BaseModel):
    """The brokers by which several processes of a hub exchange events."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    servers: str = Field(
        default="", description="HOST:PORT of brokers, with commas between. Empty: everything is one process."
    )
    prefix: str = Field(
        default="downburst",
        pattern=r"^[A-Za-z0-9._-]{1,200}$",
        description="Prefix of the names of topics. Hubs that share brokers need different prefixes.",
    )
    security: Literal["plaintext", "tls", "sasl", "sasl-tls"] = Field(
        default="plaintext",
        description="Protocol of the connections to brokers. Plain text is for networks that are yours alone.",
    )
    ca_file: Path | None = Field(
        default=None, description="PEM file of the authority of the brokers' certificates. None: the system's."
    )
    certificate_file: Path | None = Field(
        default=None, description="PEM file of this hub's certificate, where brokers require one."
    )
    key_file: Path | None = Field(default=None, description="PEM file of that certificate's key.")
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        default="SCRAM-SHA-512", description="SASL mechanism. PLAIN only inside TLS."
    )
    sasl_user: str = Field(default="", description="User name at the brokers.")
    sasl_password_file: Path | None = Field(
        default=None, description="File with the password. A file, because environments are easily printed."
    )
    products: Literal["here", "ingest"] = Field(
        default="here",
        description="Where the logs of feeds are kept: on this machine alone, or on the brokers with a copy on this "
        "machine (`ingest`; needs the program downburst-node-kafka beside downburst-node).",
    )
    replication: int = Field(
        default=0, ge=0, le=10, description="Copies of topics that the hub makes. 0: as the brokers are set up."
    )
    copy_mb: int = Field(
        default=0,
        ge=0,
        le=10**9,
        description="Megabytes of its disk that a sender takes for its copy of each feed. Older products come "
        "from the brokers on request. 0: as much as the feed keeps.",
    )
