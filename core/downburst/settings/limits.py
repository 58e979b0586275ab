"""Settings of the limits on concurrent use of the hub."""

from pydantic import Field

from downburst.settings.section import Section


class LimitSettings(Section):
    """Limits of concurrent use of the api. A tenant is a site, a user or a token; without a login, an address.

    The hub's own user, whose token lies in the data directory, has no budget: that user can stop the hub anyway.
    """

    connections: int = Field(
        default=800,
        ge=1,
        description="Connections to the api at a time. Below the 1,024 descriptors that a process may usually have.",
    )
    connections_per_address: int = Field(
        default=256,
        ge=1,
        description="Connections from one address (of IPv6: 64 bits) at a time. The default suits an institute "
        "behind one address.",
    )
    streams: int = Field(
        default=16,
        ge=1,
        description="Live streams (`/v1/events`) of a tenant at a time. The default suits a wall of monitors.",
    )
    streams_per_address: int = Field(
        default=64,
        ge=1,
        description="Live streams from one address at a time. The default suits several people behind one address.",
    )
    uploads: int = Field(
        default=256,
        ge=1,
        description="Uploads of a tenant at a time. Each takes a spool file and less than a megabyte of memory.",
    )
    bodies_bytes: int = Field(
        default=33_554_432,
        ge=1_048_576,
        description="Bytes of requests of a tenant in memory at a time, uploads apart. The default holds 32 of the "
        "largest.",
    )
    body_bytes: int = Field(
        default=1_048_576,
        ge=65_536,
        le=1_048_576,
        description="Bytes of one request, uploads apart. The default is ten times the longest request of our "
        "commands.",
    )
    body_bytes_without_login: int = Field(
        default=65_536,
        ge=1_024,
        le=1_048_576,
        description="Bytes of one request without a login. The longest request for access takes half of the default.",
    )
    requests_per_minute: float = Field(
        default=6_000.0,
        gt=0,
        description="Requests of a user or token in a minute, uploads apart. The default is 100 a second.",
    )
    requests_per_minute_without_login: float = Field(
        default=600.0,
        gt=0,
        description="Requests without a login from one address in a minute. The default is 10 a second.",
    )
    files_per_minute_without_login: float = Field(
        default=12_000.0,
        gt=0,
        description="Published files of WIS2 (`/wis2/`) for one address in a minute. Global Caches ask for each "
        "product when it is announced. The default is 200 a second.",
    )
    head_s: float = Field(
        default=20.0,
        gt=0,
        description="Seconds from the first byte of a request, or from the connection, to the end of its headers.",
    )
    body_s: float = Field(
        default=60.0,
        gt=0,
        description="Seconds that the body of a request may take; uploads have `upload_idle_s`. The default lets the "
        "largest body come at 17 kB/s.",
    )
    stalled_s: float = Field(
        default=60.0,
        gt=0,
        description="Seconds that a reader may take nothing of an answer that waits for it; then the connection "
        "closes and a page asks again.",
    )
