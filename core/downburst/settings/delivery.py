"""The flow of products through a hub: uploads, connections with sites, egress, hand-over of receipts."""

from pathlib import Path

from pydantic import BaseModel, Field


class DeliverySettings(BaseModel):
    """The flow of products through a hub. These names stand at the top level of the file."""

    max_product_bytes: int = Field(
        default=4_294_967_296,
        gt=0,
        description="Largest product any feed takes, in bytes. It limits the size of one spool file.",
    )
    upload_idle_s: float = Field(
        default=60.0,
        gt=0,
        description="Seconds an upload may stall before it is dropped. A stalled client keeps a spool file open.",
    )
    tcp_congestion: str | None = Field(
        default=None,
        description="Congestion control of the connections with sites, such as bbr; none: the system's. "
        "The kernel must have it.",
    )
    stamp_listen: str | None = Field(
        default=None,
        description="Address at which the hub's node answers STAMP requests (RFC 8762), such as 0.0.0.0:862; none: "
        "nowhere. At most 100 a second from one source, and no answer is larger than its request.",
    )
    bridges_ca_file: Path | None = Field(
        default=None,
        description="PEM file of authorities, besides those of the system, for brokers of sources and publishers, "
        "for servers of announced products, and for replay services.",
    )
    data_connections: int = Field(
        default=16,
        ge=0,
        le=16,
        description="The most connections for products that a site gets beside its first, 0 to 16; the hub "
        "opens as many as help, up to it. A long path that loses packets needs several.",
    )
    egress_capacity_bps: float = Field(
        default=1e9, gt=0, description="Bits per second that may leave the hub. The default is a gigabit port."
    )
    outage_hours: float | None = Field(
        default=None,
        gt=0,
        description="Hours that a site may be offline without loss; the hub warns of feeds whose logs hold "
        "less. None: no warnings, because only you know your sites.",
    )
    token_hours: float = Field(
        default=72.0, gt=0, description="Hours an enrolment token lasts by default; 72 cover a long weekend."
    )
    time_scale: float = Field(
        default=1.0,
        gt=0,
        description="Divides the scheduler's windows and dwell; the speed at which a trace is played.",
    )
    batch_seconds: float = Field(
        default=1.0, gt=0, le=60, description="Seconds between hand-overs of receipts from the node to the ledger."
    )
