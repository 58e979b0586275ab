"""Every setting of a hub, with unit, default and reason; the only place that knows names of the environment.

Sources, strongest first: the command line, the environment (`DOWNBURST_DATA_DIR`, nested with two underscores:
`DOWNBURST_MULTICAST__RATE_BPS`), the settings file (TOML, the same names), the defaults below.
"""

import re
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from downburst.access_settings import AccessSettings, LimitSettings, Section
from downburst.alarm_settings import AlarmSettings
from downburst.errors import BadSettings
from downburst.fleet_settings import FleetSettings
from downburst.kafka_settings import KafkaSettings
from downburst.sender_settings import SenderSettings


class FeedMulticast(Section):
    """How one feed multicasts, where that differs from the hub's other feeds."""

    interface: str | None = None
    network: IPv4Network | IPv6Network | None = None
    rate_bps: int | None = Field(default=None, gt=0)
    hops: int | None = Field(default=None, ge=1, le=255)
    burst_bytes: int | None = Field(default=None, ge=2_000)
    parity_percent: float | None = Field(default=None, ge=0, le=30)
    loss_quantile: float | None = Field(default=None, ge=0, le=1)
    repair_s: int | None = Field(default=None, ge=1, le=3_600)

    @field_validator("network")
    @classmethod
    def _is_multicast(cls, network: IPv4Network | IPv6Network | None) -> IPv4Network | IPv6Network | None:
        return network if network is None else _multicast_network(network)


class MulticastSettings(Section):
    """How this hub multicasts."""

    enabled: bool = Field(
        default=True, description="Whether any feed may go by multicast; off: the scheduler gives this as its reason."
    )
    interface: str = Field(
        default="127.0.0.1",
        description="Interface for multicast: name, number or address. Loopback: a trial disturbs no network.",
    )
    network: IPv4Network | IPv6Network = Field(
        default=IPv4Network("239.77.0.0/16"),
        description="Network of the groups, one per leg. Organisation-local scope (RFC 2365): stays inside. "
        "Inside 232.0.0.0/8 or ff3e::8000:0/97 sites join with the hub as the only source.",
    )
    hops: int = Field(
        default=32,
        ge=1,
        le=255,
        description="Range of multicast (TTL, hop limit). A national network is less wide.",
    )
    burst_bytes: int | None = Field(
        default=None,
        ge=2_000,
        description="Frame bytes that a leg may send beyond its rate: a policer's buffer. None: 10 ms of the rate.",
    )
    parity_percent: float = Field(
        default=0,
        ge=0,
        le=30,
        description="Maximum share of repair symbols sent ahead of requests, in percent, where loss is steady. "
        "0: none.",
    )
    loss_quantile: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="A leg adapts its rate to the site that this share of the others outperform. 0.9: all but 10 %.",
    )
    repair_s: int = Field(
        default=60,
        ge=1,
        le=3_600,
        description="Maximum age of repairs by the group; older ones go by each site's session.",
    )
    offload: bool = Field(
        default=True,
        description="Whether trains of datagrams leave in one call (UDP GSO). Off where a card breaks it.",
    )
    feeds: dict[str, FeedMulticast] = Field(
        default={}, description="For feeds by name: the settings above and rate_bps where they differ."
    )
    port_base: int = Field(
        default=17_000, ge=1024, le=64_000, description="UDP port of a leg: this plus the leg's id modulo 1,000."
    )
    rate_bps: int = Field(
        default=400_000_000,
        gt=0,
        description="Pace of a multicast leg in bits per second. The one-second peak of NGRID, which is 411 Mb/s.",
    )
    retry_minutes: float = Field(
        default=30.0,
        gt=0,
        description="Minutes after which a site that received no multicast is tested again. Networks get repaired.",
    )

    @field_validator("network")
    @classmethod
    def _is_multicast(cls, network: IPv4Network | IPv6Network) -> IPv4Network | IPv6Network:
        return _multicast_network(network)

    def of(self, feed: str) -> "MulticastSettings":
        """What holds for one feed."""
        own = self.feeds.get(feed)
        return self if own is None else self.model_copy(update=own.model_dump(exclude_none=True))


class CircuitSettings(Section):
    """Circuits that the hub's own nodes make, and how they are measured."""

    network: IPv4Network | IPv6Network = Field(
        default=IPv4Network("10.231.0.0/16"),
        description="Where circuits get their inner addresses: two for a site, so 32,768 circuits at a time.",
    )
    probe_minutes: float = Field(
        default=10.0,
        gt=0,
        description="Minutes between two measurements of a circuit. Half a second of ten minutes is 0.1 %.",
    )
    probe_ms: int = Field(
        default=500,
        ge=200,
        le=2_000,
        description="Milliseconds of a measuring train. Ten bins of 50 ms show a cause.",
    )


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
        default=256, ge=1, le=100_000, description="Connections of LDMs at a time. The limit of an LDM itself."
    )

    @field_validator("listen")
    @classmethod
    def _with_port(cls, listen: tuple[str, ...]) -> tuple[str, ...]:
        whole = tuple(one if re.search(r":\d+$", one) and not one.endswith("]") else f"{one}:388" for one in listen)
        for one in whole:
            split_address(one)
        return whole


class FeedScheduling(Section):
    """What the scheduler does differently for one feed."""

    dry_run: bool | None = Field(default=None, description="As `scheduler.dry_run`, for this feed.")


class SchedulerSettings(Section):
    """When the scheduler decides; times are divided by `time_scale`."""

    step_s: float = Field(
        default=10.0, gt=0, description="Seconds between two reviews of each feed. Six windows a minute."
    )
    window_s: float = Field(
        default=300.0,
        gt=0,
        description="Seconds of recent arrivals that a decision uses. Covers NGRID's quiet minutes.",
    )
    dwell_s: float = Field(
        default=300.0, ge=0, description="Seconds a transport is kept at least. A change costs joins and repair."
    )
    agreeing_windows: int = Field(
        default=3, ge=1, description="Consecutive reviews that must favour a change. One burst is not enough."
    )
    min_gain: float = Field(
        default=0.2,
        ge=0,
        lt=1,
        description="Share of egress a change must save. Below it, measurement error would decide.",
    )
    changes_per_day: int = Field(
        default=8,
        ge=0,
        description="Changes of transport that a feed may make by figures in a day; two of them are kept for missed "
        "objectives. Day and night, and a step or two.",
    )
    apart: bool = Field(
        default=False,
        description="Whether `downburst scheduler` runs beside the hub; ledger and events then need servers.",
    )
    dry_run: bool = Field(
        default=False,
        description="Whether changes are only logged and stored, not made. Pins and fallbacks are made.",
    )
    circuit_cost: float = Field(
        default=1.0,
        ge=0,
        description="Cost of one bit per second of a circuit while it is up, relative to one of egress. At 1 an "
        "hour of "
        "1 Gb/s is worth 450 GB.",
    )
    unwanted_cost: float = Field(
        default=0.5,
        ge=0,
        description="Cost of a byte that a group brings to a site without a subscription to it, relative to one "
        "of egress.",
    )
    miss_cost_bps: float = Field(
        default=1e12,
        gt=0,
        description="Cost of a latency of twice the objective, as bits per second of egress. Before any egress.",
    )
    feeds: dict[str, FeedScheduling] = Field(default={}, description="For feeds by name: dry_run where it differs.")

    def dry_run_of(self, feed: str) -> bool:
        """Whether changes of this feed are only said."""
        own = self.feeds.get(feed)
        return self.dry_run if own is None or own.dry_run is None else own.dry_run


class WatchRule(Section):
    """Maps paths under the watched directory to a feed and a product id."""

    match: str = Field(description="Regular expression on the path relative to the directory, from its start.")
    feed: str = Field(description="Feed, with back-references such as \\1.")
    product_id: str = Field(
        default="\\g<0>", description="Product id, with back-references; the whole match by default."
    )


class WatchSettings(Section):
    """A directory from which products are taken."""

    directory: Path | None = Field(default=None, description="Watched directory; none: directory ingest is off.")
    rules: tuple[WatchRule, ...] = Field(
        default=(),
        description="The first match wins. None: the first directory is the feed, the rest the product id.",
    )
    after: Literal["remove", "move"] = Field(
        default="remove",
        description="Treatment of an acknowledged file: removed, or moved to `done`. Disks fill up.",
    )
    concurrency: int = Field(
        default=8, ge=1, le=256, description="Products submitted concurrently. Just enough to keep the node busy."
    )


class Settings(BaseSettings):
    """All settings of one hub."""

    model_config = SettingsConfigDict(
        env_prefix="DOWNBURST_", env_nested_delimiter="__", extra="forbid", frozen=True, validate_default=True
    )

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
    tcp_congestion: str | None = Field(
        default=None,
        description="Congestion control of the connections with sites, such as bbr; none: the system's. "
        "The kernel must have it.",
    )
    data_connections: int = Field(
        default=16,
        ge=0,
        le=16,
        description="The most connections for products that a site gets beside its first, 0 to 16; the hub "
        "opens as many as help, up to it. A long path that loses packets needs several.",
    )
    ledger_url: str = Field(
        default="",
        description="URL of the ledger: postgresql://ROLE@HOST:5432/DATABASE. Empty: SQLite in data_dir.",
    )
    node: Path | None = Field(
        default=None, description="The downburst-node binary; none: looked for (see `downburst node-path`)."
    )
    dashboard_dir: Path | None = Field(
        default=None, description="The built page; none: looked for beside this program and in the source tree."
    )
    history_days: float = Field(
        default=30.0, gt=0, description="Days that arrivals are kept by the minute. A month's report."
    )
    latency_days: float = Field(
        default=366.0, gt=0, description="Days that latencies, and what was lost, are kept. A year and a day."
    )
    latency_apart: bool = Field(
        default=False,
        description="Whether `downburst latency-service` runs beside the hub; ledger and receipts then need servers.",
    )
    receipt_hours: float = Field(
        default=24.0, ge=0, description="Hours that raw receipts are kept, for `trace`; 0: none. A day's questions."
    )
    receipt_bytes: int = Field(
        default=4_000_000_000,
        ge=0,
        description="Disk for raw receipts, in bytes; the oldest go first. At least 38 million of them.",
    )
    scrub_bytes_per_second: int = Field(
        default=10_000_000,
        ge=0,
        description="Bytes a second read to find damage in the logs: a tenth of what a plain disk reads.",
    )
    scrub_hours: float = Field(
        default=24.0,
        ge=0,
        description="Hours between two such readings of a log; 0: none. Products stay a day by default.",
    )
    origin: str = Field(
        default="", description="Origin given to products without one; empty: this machine's host name."
    )
    outage_hours: float | None = Field(
        default=None,
        gt=0,
        description="Hours that a site may be offline without loss; the hub warns of feeds whose logs hold "
        "less. None: no warnings, because only you know your sites.",
    )
    egress_capacity_bps: float = Field(
        default=1e9, gt=0, description="Bits per second that may leave the hub. A gigabit port, the usual one."
    )
    multicast: MulticastSettings = MulticastSettings()
    circuits: CircuitSettings = CircuitSettings()
    ldm: LdmSettings = LdmSettings()
    access: AccessSettings = AccessSettings()
    limits: LimitSettings = LimitSettings()
    alarms: AlarmSettings = AlarmSettings()
    scheduler: SchedulerSettings = SchedulerSettings()
    watch: WatchSettings = WatchSettings()
    kafka: KafkaSettings = KafkaSettings()
    sender: SenderSettings = SenderSettings()
    fleet: FleetSettings = FleetSettings()
    time_scale: float = Field(
        default=1.0,
        gt=0,
        description="Divides the scheduler's windows and dwell; the speed at which a trace is played.",
    )
    batch_seconds: float = Field(
        default=1.0, gt=0, le=60, description="Seconds between hand-overs of receipts from the node to the ledger."
    )
    max_product_bytes: int = Field(
        default=4_294_967_296, gt=0, description="Largest product any feed takes, in bytes. Bounds one spool file."
    )
    upload_idle_s: float = Field(
        default=60.0,
        gt=0,
        description="Seconds an upload may stall before it is dropped. A stuck client holds a file.",
    )
    node_answer_s: float = Field(
        default=30.0,
        gt=0,
        description="Seconds the node may take to answer a question. A full disk is slow, not dead.",
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
    token_hours: float = Field(
        default=72.0, gt=0, description="Hours an enrolment token lasts by default. A long week-end."
    )

    @field_validator("http", "sites")
    @classmethod
    def _is_address(cls, text: str) -> str:
        split_address(text)
        return text

    @field_validator("ledger_url")
    @classmethod
    def _is_ledger(cls, url: str) -> str:
        if url and url.partition(":")[0].partition("+")[0] not in ("postgresql", "postgres", "sqlite"):
            raise ValueError(
                "the URL of a ledger is postgresql://ROLE@HOST:5432/DATABASE or sqlite:////PATH/ledger.sqlite"
            )
        return url

    @model_validator(mode="after")
    def _absolute(self) -> Self:
        object.__setattr__(self, "data_dir", self.data_dir.expanduser().absolute())
        return self

    @field_validator("kafka")
    @classmethod
    def _has_addresses(cls, section: KafkaSettings) -> KafkaSettings:
        for address in filter(None, section.servers.split(",")):
            split_address(address.strip())
        return section

    @model_validator(mode="after")
    def _parts_share_servers(self) -> Self:
        apart = "scheduler.apart" if self.scheduler.apart else "latency_apart" if self.latency_apart else None
        if apart and not (self.kafka.servers and self.ledger_url.startswith("postgres")):
            raise ValueError(f"{apart} needs a ledger in PostgreSQL (ledger_url) and Kafka (kafka.servers)")
        if self.kafka.products != "here" and not self.kafka.servers:
            raise ValueError("kafka.products keeps the logs of feeds on Kafka, and kafka.servers names none")
        return self

    @property
    def url_of_ledger(self) -> str:
        """The ledger's URL, with the default filled in."""
        return self.ledger_url or f"sqlite:///{self.data_dir / 'ledger.sqlite'}"

    @property
    def node_dir(self) -> Path:
        """Where the node keeps the product log and its certificates."""
        return self.data_dir / "node"

    @property
    def batch_dir(self) -> Path:
        """Where the node leaves batches for the ledger."""
        return self.data_dir / "batches"

    @property
    def spool_dir(self) -> Path:
        """Where uploads wait until the node stored them."""
        return self.data_dir / "spool"


def load_settings(file: Path | None = None, /, **given: object) -> Settings:
    """Settings from the given values, the environment and the file; one sentence about the first bad one."""
    if file is not None and not file.is_file():
        raise BadSettings(f"the settings file {file} does not exist; check the path given with --settings")
    present = {name: value for name, value in given.items() if value is not None}
    try:
        return _with_file(file)(**present)  # type: ignore[arg-type]
    except ValidationError as error:
        raise BadSettings(_sentence(error)) from error
    except ValueError as error:
        raise BadSettings(f"the settings file {file} can't be read: {error}; correct it there") from error


def split_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` or `[IPV6]:PORT`."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise ValueError(f"{text!r} is not HOST:PORT; write for example 127.0.0.1:7371")
    return host.strip("[]"), int(port)


def _with_file(file: Path | None) -> type[Settings]:
    class FromFile(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
            file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            toml = TomlConfigSettingsSource(settings_cls, toml_file=file)
            return init_settings, env_settings, toml

    return FromFile


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"there is no setting {where!r}; remove it or correct its name (docs/operator-guide.md lists all)"
    what = str(first["msg"]).removeprefix("Value error, ")
    return f"the setting {where!r} can't be used: {what}" if where else f"the settings can't be used: {what}"


HUB_VARIABLE = "DOWNBURST_HUB"
"""Names the hub that the command line asks."""
DEFAULT_HUB = "http://127.0.0.1:7371"


def _multicast_network(network: IPv4Network | IPv6Network) -> IPv4Network | IPv6Network:
    if not network.is_multicast:
        raise ValueError(f"{network} is not a multicast network; take one inside 239.0.0.0/8 or ff15::/16")
    return network
