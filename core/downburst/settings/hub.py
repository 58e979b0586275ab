"""Every setting of a hub, with unit, default and reason; the only place that knows names of the environment.

Sources, strongest first: the command line, the environment (`DOWNBURST_DATA_DIR`, nested with two underscores:
`DOWNBURST_MULTICAST__RATE_BPS`), the settings file (TOML, the same names), the defaults below.
"""

from pathlib import Path
from typing import Self

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from downburst.foundation.errors import BadSettings
from downburst.settings.access import AccessSettings
from downburst.settings.addresses import split_address
from downburst.settings.alarms import AlarmSettings
from downburst.settings.circuits import CircuitSettings
from downburst.settings.fleet import FleetSettings
from downburst.settings.kafka import KafkaSettings
from downburst.settings.ldm import LdmSettings
from downburst.settings.limits import LimitSettings
from downburst.settings.multicast import MulticastSettings
from downburst.settings.scheduler import SchedulerSettings
from downburst.settings.senders import SenderSettings
from downburst.settings.watch import WatchSettings


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
        chosen = {
            "scheduler.apart": self.scheduler.apart,
            "latency_apart": self.latency_apart,
            "circuits.apart": self.circuits.apart,
            "alarms.apart": self.alarms.apart,
        }
        apart = next((name for name, is_apart in chosen.items() if is_apart), None)
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
