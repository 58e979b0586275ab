"""Bridges: sources of WIS2, the state of their brokers, and what came by them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Annotated, Literal, Self

from pydantic import Field

from downburst.domain import bridges
from downburst.domain.bridges.health import BrokerHealth, Judged, subscription_health
from downburst.domain.bridges.origins import LONGEST_HOST, LONGEST_SECRET, LONGEST_WEB_ADDRESS, MOST_LOGINS
from downburst.domain.bridges.pace import Pace
from downburst.domain.bridges.sources import (
    EVERYONE,
    LONGEST_URL,
    LONGEST_USER,
    MOST_BROKERS,
    MOST_BYTES,
    MOST_FILTERS,
)
from downburst.wis2.topics import advice_on, check_filter
from downburst_contract.base import Answer, Shape

_Name = Annotated[str, Field(max_length=63)]
_Topics = Annotated[list[Annotated[str, Field(max_length=500)]], Field(min_length=1, max_length=MOST_FILTERS)]
_Budget = Annotated[int, Field(gt=0, le=MOST_BYTES)]


class BrokerWanted(Shape):
    """A broker of notifications."""

    url: Annotated[str, Field(max_length=LONGEST_URL)]
    """`mqtts://HOST[:PORT]`, `mqtt://…`, `wss://HOST[:PORT]/PATH` or `ws://…`."""
    user: Annotated[str, Field(max_length=LONGEST_USER)] = EVERYONE
    password: Annotated[str, Field(max_length=LONGEST_USER)] = EVERYONE
    mqtt: Literal[5, 311] = 5
    """The version of MQTT: 5, or 311 for 3.1.1."""

    def to_model(self) -> bridges.Broker:
        """The broker; refuses an impossible address."""
        return bridges.Broker(self.url, self.user, self.password, self.mqtt)


_Brokers = Annotated[list[BrokerWanted], Field(min_length=1, max_length=MOST_BROKERS)]
_Secret = Annotated[str, Field(max_length=LONGEST_SECRET)]


class LoginWanted(Shape):
    """A login at a server of recommended data: a user with a password, or a bearer token."""

    host: Annotated[str, Field(max_length=LONGEST_HOST)]
    """HOST, or HOST:PORT where the port is not the usual one of the address."""
    user: _Secret | None = None
    password: _Secret | None = None
    token: _Secret | None = None

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"user", "password", "token"}

    def to_model(self) -> bridges.OriginLogin:
        """The login; refuses an impossible host, and half a login."""
        return bridges.OriginLogin(self.host, self.user, self.password, self.token)


_Logins = Annotated[list[LoginWanted], Field(max_length=MOST_LOGINS)]
_Replay = Annotated[str, Field(max_length=LONGEST_WEB_ADDRESS)]


class BridgeChange(Shape):
    """Properties of a source; those left out keep their value."""

    feed: _Name | None = None
    brokers: _Brokers | None = None
    """Several bring the same notifications: each product is taken once."""
    topics: _Topics | None = None
    """Topics, in which `+` stands for one level, and `#` at the end for all below."""
    takes_recommended: bool | None = None
    bytes_per_day: _Budget | None = None
    """The limit of each centre; null: none."""
    may_ask_private: bool | None = None
    """Products may be fetched from private networks."""
    enabled: bool | None = None
    replay_url: _Replay | None = None
    """A Global Replay service, which is asked for what brokers have dropped; null: none."""
    logins: _Logins | None = None
    """All of them: those that are left out are forgotten."""

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"bytes_per_day", "replay_url"}

    def applied_to(self, source: bridges.Wis2Source) -> bridges.Wis2Source:
        """The source with these changes; refuses impossible values."""
        given = self.model_dump(exclude_unset=True, exclude={"brokers", "topics", "logins"})
        if self.brokers is not None:
            given["brokers"] = tuple(broker.to_model() for broker in self.brokers)
        if self.topics is not None:
            given["filters"] = tuple(map(check_filter, self.topics))
        if self.logins is not None:
            given["logins"] = tuple(login.to_model() for login in self.logins)
        return replace(source, **given)


class BridgeWanted(Shape):
    """A source of WIS2 whose products go into a feed."""

    bridge: _Name
    feed: _Name
    brokers: _Brokers
    """Several bring the same notifications: each product is taken once."""
    topics: _Topics
    """Topics, in which `+` stands for one level, and `#` at the end for all below."""
    takes_recommended: bool = False
    bytes_per_day: _Budget | None = None
    """The limit of each centre; null: none."""
    may_ask_private: bool = False
    """Products may be fetched from private networks."""
    enabled: bool = True
    replay_url: _Replay | None = None
    """A Global Replay service, which is asked for what brokers have dropped; null: none."""
    logins: _Logins = Field(default_factory=list)
    """At servers of recommended data."""

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"bytes_per_day", "replay_url"}

    def to_model(self) -> bridges.Wis2Source:
        """The source; refuses impossible values."""
        return bridges.Wis2Source(
            self.bridge,
            self.feed,
            tuple(broker.to_model() for broker in self.brokers),
            tuple(map(check_filter, self.topics)),
            self.takes_recommended,
            self.bytes_per_day,
            self.may_ask_private,
            self.enabled,
            replay_url=self.replay_url,
            logins=tuple(login.to_model() for login in self.logins),
        )


class BrokerState(Answer):
    """A broker with the state of the subscription there, without its password."""

    url: str
    user: str
    mqtt: int
    connected_at: datetime | None
    """Null: it is not connected, for the reason in `fault`."""
    session_present: bool
    """The broker kept the session since the last connection."""
    bound: int
    """Topics that the broker has accepted."""
    refused: list[str]
    """Topics that it has refused, each with the reason."""
    last_at: datetime | None
    """The last message; of a publisher, the last announcement that the broker has acknowledged with reason 0."""
    fault: str
    """The reason for which it is not connected; empty while it is."""
    health: BrokerHealth
    sentence: str
    """The reason for the health."""
    messages_per_s: float | None
    """Over the last minute; null for a publisher, and while there is no subscription."""
    delay_s: float | None
    """From publication to receipt, of the last notification; null: none could be read yet."""

    @classmethod
    def of(
        cls, broker: bridges.Broker, standing: bridges.Standing, judged: Judged, *, pace: Pace | None, at: datetime
    ) -> Self:
        """The broker for clients."""
        return cls(
            url=broker.url,
            user=broker.user,
            mqtt=broker.mqtt,
            connected_at=standing.connected_at,
            session_present=standing.session_present,
            bound=standing.bound,
            refused=list(standing.refused),
            last_at=standing.last_at,
            fault=standing.fault,
            health=judged.health,
            sentence=judged.sentence,
            messages_per_s=None if pace is None else pace.per_s(at),
            delay_s=None if pace is None else pace.delay_s,
        )

    @classmethod
    def of_source(cls, broker: bridges.Broker, source: bridges.Wis2Source, seen: "Seen") -> Self:
        """A broker of a source."""
        if not source.enabled:
            return cls.off(broker)
        standing = seen.now.standings.get(broker.url, bridges.Standing())
        judged = subscription_health(standing, len(source.filters), seen.at)
        pace = None if standing.connected_at is None else seen.now.paces[broker.url]
        return cls.of(broker, standing, judged, pace=pace, at=seen.at)

    @classmethod
    def off(cls, broker: bridges.Broker) -> Self:
        """The broker of a bridge that is switched off."""
        return cls(
            url=broker.url,
            user=broker.user,
            mqtt=broker.mqtt,
            connected_at=None,
            session_present=False,
            bound=0,
            refused=[],
            last_at=None,
            fault=OFF,
            health=BrokerHealth.OFF,
            sentence=OFF,
            messages_per_s=None,
            delay_s=None,
        )


@dataclass(frozen=True, slots=True)
class Seen:
    """A source as it is at a moment."""

    now: bridges.SourceNow
    count: Mapping[bridges.State, int]
    oldest_coming_at: datetime | None
    at: datetime


class BridgePace(Answer):
    """The speed of a source since the hub has started, or the source was changed."""

    behind_s: float | None
    """The age of the oldest product that is still to be fetched, or the delay of the newest notification, whichever
    is longer; null: nothing has come yet."""
    oldest_coming_at: datetime | None
    """The receipt of the oldest product that is still to be fetched; null: none is."""
    products: int
    """The last ones that were stored, at most 1,000, of which the next two figures are."""
    p50_s: float | None
    """From publication to this hub's log."""
    p99_s: float | None

    @classmethod
    def of(cls, seen: Seen) -> Self:
        """The speed for clients."""
        delays = [pace.delay_s for pace in seen.now.paces.values() if pace.delay_s is not None]
        oldest_at, latencies = seen.oldest_coming_at, seen.now.latencies
        late = [] if oldest_at is None else [(seen.at - oldest_at).total_seconds()]
        # The broker that is ahead counts: each product is taken from the first one that has it.
        late += [min(delays)] if delays else []
        return cls(
            behind_s=max(late, default=None),
            oldest_coming_at=oldest_at,
            products=len(latencies),
            p50_s=latencies.quantile(0.50),
            p99_s=latencies.quantile(0.99),
        )


class LoginShown(Answer):
    """A login without its secret."""

    host: str
    user: str | None
    """Null: a token is used."""


class BridgeProducts(Answer):
    """The number of a source's products by state, in the last two days."""

    coming: int
    """They were announced and are still to be fetched."""
    waiting: int
    """Their centres have used up their bytes of the day."""
    held: int
    failed: int
    """Nothing is tried for them any more: `GET …/failed` has the reasons."""


class Bridge(Answer):
    """A source of WIS2 with the state of its brokers and the number of its products."""

    bridge: str
    feed: str
    brokers: list[BrokerState]
    topics: list[str]
    takes_recommended: bool
    bytes_per_day: int | None
    may_ask_private: bool
    enabled: bool
    replay_url: str | None
    """A Global Replay service, which is asked for what brokers have dropped."""
    logins: list[LoginShown]
    """At servers of recommended data."""
    created_at: datetime | None
    products: BridgeProducts
    advice: list[str]
    """Topics that are unwise, each with the reason."""
    pace: BridgePace

    @classmethod
    def of(cls, source: bridges.Wis2Source, seen: Seen) -> Self:
        """The source for clients."""
        return cls(
            bridge=source.name,
            feed=source.feed,
            brokers=[BrokerState.of_source(one, source, seen) for one in source.brokers],
            topics=list(source.filters),
            takes_recommended=source.takes_recommended,
            bytes_per_day=source.bytes_per_day,
            may_ask_private=source.may_ask_private,
            enabled=source.enabled,
            replay_url=source.replay_url,
            logins=[LoginShown(host=one.host, user=one.user) for one in source.logins],
            created_at=source.created_at,
            products=BridgeProducts(
                coming=seen.count.get(bridges.State.COMING, 0),
                waiting=seen.count.get(bridges.State.WAITING, 0),
                held=seen.count.get(bridges.State.HELD, 0),
                failed=seen.count.get(bridges.State.FAILED, 0),
            ),
            advice=[advice for one in source.filters if (advice := advice_on(one))],
            pace=BridgePace.of(seen),
        )


class FailedProduct(Answer):
    """A product that could not be fetched."""

    data_id: str
    topic: str
    published_at: datetime
    received_at: datetime
    failed_at: datetime | None
    reason: str

    @classmethod
    def of(cls, notice: bridges.Notice) -> Self:
        """The product for clients."""
        return cls(
            data_id=notice.data_id,
            topic=notice.topic,
            published_at=notice.last.published_at,
            received_at=notice.received_at,
            failed_at=notice.settled_at,
            reason=notice.reason,
        )


class Retried(Answer):
    """The number of products that are tried once more."""

    products: int


class CentreAccount(Answer):
    """The account of a centre for a day, UTC."""

    centre: str
    day: date
    products: int
    bytes: int
    """As announced, or as fetched where no length was announced."""
    copies: int
    """Notifications of products that came before."""
    refused: int
    failed: int
    coming: int
    """Products that are being fetched, or are next."""
    waiting: int
    """Products for which the centre has no bytes left today: they come on a later day."""
    waiting_bytes: int

    @classmethod
    def of(cls, day: bridges.CentreDay, left: bridges.Unsettled) -> Self:
        """The account for clients."""
        return cls(
            centre=day.centre,
            day=day.day,
            products=day.products,
            bytes=day.bytes,
            copies=day.copies,
            refused=day.refused,
            failed=day.failed,
            coming=left.coming,
            waiting=left.waiting,
            waiting_bytes=left.waiting_bytes,
        )


class PassedOverMessage(Answer):
    """A message of which nothing is fetched."""

    at: datetime
    broker: str
    topic: str
    verdict: str
    sentence: str


class BrokerHole(Answer):
    """A time in which a broker may have dropped notifications."""

    number: int
    broker: str
    from_at: datetime
    to_at: datetime
    reason: str
    filled_at: datetime | None
    """The time from which another broker, or a replay, has brought all of it; null: not yet."""
    filled_by: str | None
    """The address of that broker or replay service."""
    fault: str
    """The reason for which a replay has not filled it; empty: none has failed."""


OFF = "switched off"
