"""The ledger and the raw receipts: place, days and hours kept, readings that look for damage."""

from pydantic import BaseModel, Field, field_validator


class RecordSettings(BaseModel):
    """Ledger, history and raw receipts. These names stand at the top level of the file."""

    ledger_url: str = Field(
        default="",
        description="URL of the ledger: postgresql://ROLE@HOST:5432/DATABASE. Empty: SQLite in data_dir.",
    )
    history_days: float = Field(
        default=30.0,
        gt=0,
        description="Days that arrivals are kept by the minute. The default covers a monthly report.",
    )
    latency_days: float = Field(
        default=366.0, gt=0, description="Days that latencies and losses are kept. The default is a year and a day."
    )
    measurement_days: float = Field(
        default=90.0,
        gt=0,
        description="Days that results of test points are kept. The default covers a quarter of a year.",
    )
    latency_apart: bool = Field(
        default=False,
        description="Whether `downburst latency-service` runs beside the hub; ledger and receipts then need servers.",
    )
    receipt_hours: float = Field(
        default=24.0,
        ge=0,
        description="Hours that raw receipts are kept, for `trace`; 0: none. The default answers questions about the "
        "last day.",
    )
    receipt_bytes: int = Field(
        default=4_000_000_000,
        ge=0,
        description="Disk for raw receipts, in bytes; the oldest go first. At least 38 million of them.",
    )
    scrub_hours: float = Field(
        default=24.0,
        ge=0,
        description="Hours between two such readings of a log; 0: none. By default products stay a day.",
    )
    scrub_bytes_per_second: int = Field(
        default=10_000_000,
        ge=0,
        description="Bytes a second read to find damage in the logs: a tenth of what a plain disk reads.",
    )
    host_counters: bool = Field(
        default=True,
        description="Whether nodes record processors, disk and interfaces of their host each second, for `analyze`.",
    )

    @field_validator("ledger_url")
    @classmethod
    def _is_ledger(cls, url: str) -> str:
        if url and url.partition(":")[0].partition("+")[0] not in ("postgresql", "postgres", "sqlite"):
            raise ValueError(
                "the URL of a ledger is postgresql://ROLE@HOST:5432/DATABASE or sqlite:////PATH/ledger.sqlite"
            )
        return url
