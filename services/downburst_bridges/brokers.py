"""A durable subscription at a broker.

Messages are acknowledged by the caller, once they are stored: the broker sends the others again.
"""

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from downburst.domain.bridges import Broker
from downburst.foundation.clock import Clock
from downburst_bridges.connection import KEEPALIVE_S, Changed, Connection, said


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message that waits for its acknowledgement."""

    topic: str
    payload: bytes
    at: datetime
    number: int
    """Of the packet, in its connection."""
    connection: int
    """A later connection brings it again, under another number."""


@dataclass(frozen=True, slots=True)
class Session:
    """The session that a broker keeps."""

    client_id: str
    filters: tuple[str, ...]
    former_filters: tuple[str, ...] = ()
    """Topics of earlier runs, to which it may still be bound."""


class Subscription(Connection):
    """A subscription at one broker. All methods and callbacks belong to the event loop."""

    def __init__(
        self,
        broker: Broker,
        session: Session,
        *,
        clock: Clock,
        changed: Changed = lambda _now: None,
        ca_file: Path | None = None,
    ) -> None:
        self._session = session
        self._incoming: deque[tuple[int, mqtt.MQTTMessage]] = deque()
        """From paho's thread. The broker's window bounds it: `IN_FLIGHT` by MQTT 5, its own one by MQTT 3.1.1."""
        self._delivered: asyncio.Queue[Delivered] = asyncio.Queue()
        self._connection = self._connection_of_thread = 0
        super().__init__(broker, session.client_id, clock, changed, keeps_session=True, ca_file=ca_file)
        self.client.on_subscribe, self.client.on_message = self._on_subscribe, self._on_message

    def start(self) -> None:
        """Connects, and comes back after each loss with growing pauses. The broker keeps the session in between."""
        properties = None
        if self.broker.mqtt == 5:
            properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
            properties.SessionExpiryInterval = SESSION_S
            properties.ReceiveMaximum = IN_FLIGHT
        start = False if self.broker.mqtt == 5 else mqtt.MQTT_CLEAN_START_FIRST_ONLY
        self.client.connect_async(
            self.broker.host, self.broker.port, keepalive=KEEPALIVE_S, clean_start=start, properties=properties
        )
        self.client.loop_start()

    async def next(self, most: int) -> list[Delivered]:
        """Waits for messages; returns those that have come, at most so many.

        After the first one it waits a little for more, as a transaction of the ledger costs more than what one of
        them writes, unless there are as many as brokers with a small window send.
        """
        found = [await self._delivered.get()]
        with suppress(TimeoutError):
            async with asyncio.timeout(GROUP_S):
                while len(found) < GROUP:
                    found.append(await self._delivered.get())
        while len(found) < most and not self._delivered.empty():
            found.append(self._delivered.get_nowait())
        return [one for one in found if one.connection == self._connection]

    def acknowledge(self, delivered: Delivered) -> None:
        """Has the broker forget a message. Of an earlier connection it comes again, and is a copy then."""
        if delivered.connection == self._connection:
            self.client.ack(delivered.number, 1)

    def connected(self) -> None:
        """Binds the session to its topics, also one that is present: they may have changed."""
        self._connection += 1
        self.client.subscribe(self._wanted())
        if self._session.former_filters:
            self.client.unsubscribe(list(self._session.former_filters))

    # The following are called by paho's thread.

    def _on_connect(
        self, client: mqtt.Client, userdata: Any, flags: mqtt.ConnectFlags, reason: ReasonCode, _: Properties | None
    ) -> None:
        self._connection_of_thread += not reason.is_failure
        super()._on_connect(client, userdata, flags, reason, _)

    def _on_subscribe(
        self, _client: mqtt.Client, _userdata: Any, _mid: int, reasons: list[ReasonCode], _: Properties | None
    ) -> None:
        pairs = zip(self._session.filters, reasons, strict=False)
        refused = tuple(f"{wanted} ({said(reason)})" for wanted, reason in pairs if reason.is_failure)
        self.loop.call_soon_threadsafe(self._subscribed, refused)

    def _on_message(self, _client: mqtt.Client, _userdata: Any, message: mqtt.MQTTMessage) -> None:
        self._incoming.append((self._connection_of_thread, message))
        if len(self._incoming) == 1:
            # The event loop takes all that have come when it gets there, and is woken once for them.
            self.loop.call_soon_threadsafe(self._heard)

    # The following belong to the event loop.

    def _wanted(self) -> Any:
        if self.broker.mqtt != 5:
            return [(one, 1) for one in self._session.filters]
        # Retained messages are of no use: they were sent before.
        options = SubscribeOptions(qos=1, retainHandling=SubscribeOptions.RETAIN_DO_NOT_SEND)
        return [(one, options) for one in self._session.filters]

    def _subscribed(self, refused: tuple[str, ...]) -> None:
        bound = len(self._session.filters) - len(refused)
        self.is_now(replace(self.standing, bound=bound, refused=refused))

    def _heard(self) -> None:
        now = self.clock.now()
        self.is_now(replace(self.standing, last_at=now))
        while self._incoming:
            connection, one = self._incoming.popleft()
            self._delivered.put_nowait(Delivered(one.topic, bytes(one.payload), now, one.mid, connection))


IN_FLIGHT = 500
GROUP, GROUP_S = 20, 0.01
"""mosquitto has at most 20 messages without acknowledgement by default (`max_inflight_messages`)."""
SESSION_S = 7 * 86_400
