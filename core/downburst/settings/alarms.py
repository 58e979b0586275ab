"""Settings of alarms."""

from pydantic import Field, field_validator

from downburst.foundation.errors import BadInput
from downburst.network.receiver_addresses import web_address
from downburst.settings.section import Section


class ConditionSettings(Section):
    """The limits beyond which a condition is an alarm."""

    objective_quantile: float = Field(
        default=0.99, gt=0, lt=1, description="Share of deliveries that has to meet a feed's objective."
    )
    objective_minutes: float = Field(
        default=10.0, gt=0, le=1_440, description="Minutes over which that is judged. A single burst raises no alarm."
    )
    objective_products: int = Field(
        default=100,
        ge=1,
        description="Deliveries that a window needs to be judged. One late delivery of 99 says little.",
    )
    site_down_s: float = Field(
        default=60.0, ge=0, description="Seconds that a site may be offline. A restart takes less."
    )
    stalled_s: float = Field(
        default=45.0, gt=0, description="Seconds that a connected site may store nothing while products wait."
    )
    silence_pauses: int = Field(
        default=100,
        ge=2,
        le=1_000,
        description="Pauses of a feed after which its silence is judged. With fewer, healthy feeds raise alarms.",
    )
    heartbeat_s: float = Field(
        default=10.0,
        ge=0,
        le=3_600,
        description="Seconds between heartbeats, products that no consumer sees, in each feed that a site takes; "
        "0: none. They find silent losses.",
    )
    heartbeat_late_s: float = Field(
        default=30.0,
        gt=0,
        description="Seconds within which a heartbeat has to come out at a site. With the default a loss is found "
        "well within a minute.",
    )
    violation_s: float = Field(
        default=3_600.0,
        gt=0,
        description="Seconds that an alarm lasts after a site's last impossible report. It may occur again.",
    )
    clock_ms: float = Field(
        default=1_000.0,
        gt=0,
        description="Milliseconds that a site's clock may be off. The hub corrects for it, but it is a sign of "
        "trouble.",
    )
    credential_days: float = Field(
        default=14.0,
        ge=0,
        description="Days before the end of a site's credential by which it should have been replaced; of a "
        "short one the last quarter. Half of the month of attempts.",
    )
    disk_free_share: float = Field(
        default=0.05,
        ge=0,
        lt=1,
        description="Share of the hub's disk that has to be free. Logs fill a disk in hours.",
    )
    linked_free_share: float = Field(
        default=0.25,
        ge=0,
        le=1e9,
        description="Free space that a site's disk needs, as a share of the space of linked files whose products "
        "left the site's log; 0: no alarm. Files of four days leave a day.",
    )
    prediction_factor: float = Field(
        default=2.0,
        gt=1,
        description="Factor by which predicted and measured p99 of a feed may differ. Plans rest on predictions.",
    )
    prediction_again_h: float = Field(
        default=24.0,
        ge=0,
        le=8_760,
        description="Hours in which a feed's predictions raise at most one alarm. They change no plan in that time.",
    )


class NoticeSettings(Section):
    """The ways to receivers and to the outside service that watches the hub."""

    dead_man_url: str = Field(
        default="",
        description="http:// or https:// address that gets a POST while all probes pass, so that an outside "
        "watcher notices when it stops. Empty: none.",
    )
    dead_man_s: float = Field(
        default=60.0,
        ge=5,
        description="Seconds between two of these POSTs. The outside service notices a missing minute.",
    )
    site_webhooks_inside: bool = Field(
        default=False,
        description="Whether receivers that sites' administrators set may lie at addresses that are not public.",
    )
    smtp_url: str = Field(
        default="",
        description="Mail server: smtp://[USER:PASSWORD@]HOST[:PORT] or smtps://... Empty: no mail.",
    )
    mail_from: str = Field(default="downburst@localhost", description="Sender of mail.")


class AlarmSettings(ConditionSettings, NoticeSettings):
    """The conditions of alarms, and the ways to receivers."""

    apart: bool = Field(
        default=False,
        description="Whether `downburst alarm-service` runs beside the hub; ledger and events then need servers.",
    )
    look_s: float = Field(default=5.0, gt=0, description="Seconds between two evaluations.")
    end_after_s: float = Field(
        default=30.0,
        ge=0,
        description="Seconds that a condition must be over before its alarm ends. A condition may come and go.",
    )

    @field_validator("dead_man_url")
    @classmethod
    def _can_be_connected_to(cls, value: str) -> str:
        if value:
            try:
                web_address(value, what="it")
            except BadInput as error:
                raise ValueError(error.sentence) from None
        return value
