"""Every setting of a hub, with unit, default and reason; the only place that knows the environment's names.

Sources, strongest first: the command line, the environment (`DOWNBURST_DATA_DIR`, nested with two underscores:
`DOWNBURST_MULTICAST__RATE_BPS`), the settings file (TOML, the same names), the defaults below.
"""

import ssl
from ipaddress import ip_address
from pathlib import Path
from typing import Self

from pydantic import ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from downburst.foundation.errors import BadSettings
from downburst.settings.access import AccessSettings
from downburst.settings.addresses import split_address
from downburst.settings.alarms import AlarmSettings
from downburst.settings.circuits import CircuitSettings
from downburst.settings.delivery import DeliverySettings
from downburst.settings.fleet import FleetSettings
from downburst.settings.kafka import KafkaSettings
from downburst.settings.ldm import LdmSettings
from downburst.settings.limits import LimitSettings
from downburst.settings.multicast import MulticastSettings
from downburst.settings.process import ProcessSettings
from downburst.settings.records import RecordSettings
from downburst.settings.scheduler import SchedulerSettings
from downburst.settings.senders import SenderSettings
from downburst.settings.watch import WatchSettings


class Settings(ProcessSettings, DeliverySettings, RecordSettings, BaseSettings):
    """All settings of one hub."""

    model_config = SettingsConfigDict(
        env_prefix="DOWNBURST_", env_nested_delimiter="__", extra="forbid", frozen=True, validate_default=True
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

    @field_validator("stamp_listen")
    @classmethod
    def _is_plain_address(cls, address: str | None) -> str | None:
        if address is not None:
            ip_address(split_address(address)[0])
        return address

    @field_validator("bridges_ca_file")
    @classmethod
    def _has_certificates(cls, file: Path | None) -> Path | None:
        if file is not None:
            try:
                ssl.create_default_context().load_verify_locations(file)
            except OSError as error:
                raise ValueError(f"{file} has no certificates in PEM that can be read ({error.strerror})") from error
        return file

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
        """The directory of the node's product log and its certificates."""
        return self.data_dir / "node"

    @property
    def batch_dir(self) -> Path:
        """The directory of the node's batches for the ledger."""
        return self.data_dir / "batches"

    @property
    def spool_dir(self) -> Path:
        """The directory of uploads until the node has stored them."""
        return self.data_dir / "spool"


def load_settings(file: Path | None = None, /, **given: object) -> Settings:
    """Settings from the given values, the environment and the file; raises `BadSettings` for the first bad one."""
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
        return f"there is no setting {where!r}; remove it or correct its name ('downburst help settings' lists all)"
    what = str(first["msg"]).removeprefix("Value error, ")
    return f"the setting {where!r} can't be used: {what}" if where else f"the settings can't be used: {what}"
