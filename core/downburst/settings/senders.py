"""Settings of `downburst sender`, a node that sends for a hub."""

from pydantic import Field

from downburst.settings.section import Section


class SenderSettings(Section):
    """The identity of a sender among those of its hub; read by `downburst sender` alone."""

    name: str = Field(
        default="",
        pattern=r"^[ -~]{0,63}$",
        description="Its name in the ledger, unique. Empty: this machine's host name, which a pod of "
        "a stateful set keeps.",
    )
    public: str = Field(
        default="",
        description="HOST:PORT by which sites reach it; every node of the hub sends it to them. Empty: the address "
        "that it listens on, for a trial on one machine.",
    )
    drain_s: float = Field(
        default=20.0,
        ge=0,
        description="Seconds that its sites may take to move to other senders when it is asked to stop. Below "
        "the half "
        "minute after which Kubernetes kills.",
    )
