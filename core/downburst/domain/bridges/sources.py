"""Sources of WIS2: the brokers of notifications, and the limits of what is taken."""

import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from urllib.parse import urlsplit

from downburst.domain.bridges.origins import MOST_LOGINS, OriginLogin, check_web_address
from downburst.foundation.errors import BadInput
from downburst.foundation.names import check_feed_name

EVERYONE = "everyone"
"""User and password of the Global Brokers (guide to WIS2, 2.6.1.3)."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker of notifications, such as a Global Broker."""

    url: str
    """`mqtts://HOST[:PORT]`, `mqtt://…`, `wss://HOST[:PORT]/PATH` or `ws://…`, without a user."""
    user: str = EVERYONE
    password: str = field(default=EVERYONE, repr=False)
    mqtt: int = 5
    """The version of MQTT: 5, or 311 for 3.1.1, whose sessions some brokers keep over a restart."""

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            port = parts.port
        except ValueError:
            raise BadInput(f"{self.url[:200]!r} is no address of a broker; {ADVICE}") from None
        if parts.scheme not in PORTS or not parts.hostname or parts.query or parts.fragment or port == 0:
            raise BadInput(f"{self.url[:200]!r} is no address of a broker; {ADVICE}")
        if parts.username is not None or parts.password is not None:
            raise BadInput("the address of a broker has a user in it; give user and password apart")
        if self.mqtt not in {5, 311}:
            raise BadInput(f"{self.mqtt} is no version of MQTT; write 5 or 311")
        if len(self.url) > LONGEST_URL or max(len(self.user), len(self.password)) > LONGEST_USER:
            raise BadInput("the address, user or password of a broker is too long")

    @property
    def host(self) -> str:
        """Its name or address."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """Its port."""
        parts = urlsplit(self.url)
        return parts.port or PORTS[parts.scheme]

    @property
    def is_encrypted(self) -> bool:
        """True if it is asked by TLS."""
        return urlsplit(self.url).scheme in {"mqtts", "wss"}

    @property
    def websocket_path(self) -> str | None:
        """The path of its WebSocket; None: it is asked without one."""
        parts = urlsplit(self.url)
        return (parts.path or "/mqtt") if parts.scheme in {"ws", "wss"} else None


@dataclass(frozen=True, slots=True)
class Wis2Source:
    """Notifications of WIS2 whose products go into one feed."""

    name: str
    feed: str
    brokers: tuple[Broker, ...]
    """Several bring the same notifications: each product is taken once."""
    filters: tuple[str, ...]
    """Topics, with wildcards."""
    takes_recommended: bool = False
    bytes_per_day: int | None = None
    """The limit of each centre."""
    may_ask_private: bool = False
    """Products may be fetched from private networks."""
    enabled: bool = True
    former_filters: tuple[str, ...] = ()
    """Topics of earlier versions: brokers keep subscriptions in the session until they are told otherwise."""
    created_at: datetime | None = None
    replay_url: str | None = None
    """A Global Replay service, which is asked for what brokers have dropped."""
    logins: tuple[OriginLogin, ...] = ()
    """At servers of recommended data."""

    def in_place_of(self, before: "Wis2Source") -> "Wis2Source":
        """This one as the later version of another."""
        former = (one for one in before.former_filters + before.filters if one not in self.filters)
        kept = tuple(dict.fromkeys(former))[-MOST_FILTERS:]
        return replace(self, former_filters=kept, created_at=before.created_at)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise BadInput(f"{self.name!r} is no name of a source; use up to 63 of a-z, 0-9, dots and hyphens")
        check_feed_name(self.feed)
        for named, given, most in (("brokers", self.brokers, MOST_BROKERS), ("topics", self.filters, MOST_FILTERS)):
            if not 1 <= len(given) <= most:
                raise BadInput(f"a source has 1 to {most} {named}, and {len(given)} are given")
        if len({broker.url for broker in self.brokers}) < len(self.brokers):
            raise BadInput("a source has the same broker twice; remove one of them")
        if self.replay_url is not None:
            check_web_address(self.replay_url, "a replay service")
        if len(self.logins) > MOST_LOGINS or len({one.host for one in self.logins}) < len(self.logins):
            raise BadInput(f"a source has up to {MOST_LOGINS} logins, one for each host")
        if self.bytes_per_day is not None and not 0 < self.bytes_per_day <= MOST_BYTES:
            raise BadInput(f"the limit of a centre is 1 to {MOST_BYTES} bytes a day")


PORTS = {"mqtt": 1883, "mqtts": 8883, "ws": 80, "wss": 443}
ADVICE = "write one such as mqtts://globalbroker.example:8883 or wss://globalbroker.example/mqtt"
LONGEST_URL = 500
LONGEST_USER = 200
MOST_BROKERS = 8
MOST_FILTERS = 200
MOST_BYTES = 1 << 50
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}")
