"""A durable subscription at a broker, by paho-mqtt in a thread of its own.

Messages are acknowledged by the caller, once they are stored: the broker sends the others again.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from downburst.domain.bridges import Broker, Standing
from downburst.foundation.clock import Clock


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


class Subscription:
    """A subscription at one broker. All methods and callbacks belong to the event loop."""

    def __init__(
        self,
        broker: Broker,
        session: Session,
        *,
        clock: Clock,
        changed: Callable[[Standing], None] = lambda _now: None,
        ca_file: str | None = None,
    ) -> None:
        self._broker, self._session, self._clock, self._changed = broker, session, clock, changed
        self._loop = asyncio.get_running_loop()
        self._delivered: asyncio.Queue[Delivered] = asyncio.Queue()
        self._connection = 0
        self.standing = Standing()
        self._client = self._made(ca_file)

    def start(self) -> None:
        """Connects, and comes back after each loss with growing pauses."""
        properties = None
        if self._broker.mqtt == 5:
            properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
            properties.SessionExpiryInterval = SESSION_S
            properties.ReceiveMaximum = IN_FLIGHT
        self._client.reconnect_delay_set(min_delay=1, max_delay=60)
        start = False if self._broker.mqtt == 5 else mqtt.MQTT_CLEAN_START_FIRST_ONLY
        self._client.connect_async(
            self._broker.host, self._broker.port, keepalive=KEEPALIVE_S, clean_start=start, properties=properties
        )
        self._client.loop_start()

    async def stop(self) -> None:
        """Disconnects; the broker keeps the session."""
        self._client.disconnect()
        await asyncio.to_thread(self._client.loop_stop)

    async def next(self, most: int) -> list[Delivered]:
        """Waits for messages; returns those that have come, at most so many."""
        found = [await self._delivered.get()]
        while len(found) < most and not self._delivered.empty():
            found.append(self._delivered.get_nowait())
        return [one for one in found if one.connection == self._connection]

    def acknowledge(self, delivered: Delivered) -> None:
        """Has the broker forget a message. Of an earlier connection it comes again, and is a copy then."""
        if delivered.connection == self._connection:
            self._client.ack(delivered.number, 1)

    def _made(self, ca_file: str | None) -> mqtt.Client:
        is_5 = self._broker.mqtt == 5
        path = self._broker.websocket_path
        client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            self._session.client_id,
            clean_session=None if is_5 else False,
            protocol=MQTTProtocolVersion.MQTTv5 if is_5 else MQTTProtocolVersion.MQTTv311,
            transport="tcp" if path is None else "websockets",
            manual_ack=True,
        )
        client.username_pw_set(self._broker.user, self._broker.password)
        if path is not None:
            client.ws_set_options(path)
        if self._broker.is_encrypted:
            client.tls_set_context(ssl.create_default_context(cafile=ca_file))
        client.on_connect, client.on_connect_fail = self._on_connect, self._on_connect_fail
        client.on_disconnect, client.on_subscribe, client.on_message = (
            self._on_disconnect,
            self._on_subscribe,
            self._on_message,
        )
        return client

    # The following are called by paho's thread.

    def _on_connect(
        self, client: mqtt.Client, _userdata: Any, flags: mqtt.ConnectFlags, reason: ReasonCode, _: Properties | None
    ) -> None:
        if reason.is_failure:
            self._loop.call_soon_threadsafe(self._is, replace(self.standing, connected_at=None, fault=_said(reason)))
            return
        self._loop.call_soon_threadsafe(partial(self._connected, session_present=flags.session_present))
        client.subscribe(self._wanted())
        if self._session.former_filters:
            client.unsubscribe(list(self._session.former_filters))

    def _on_connect_fail(self, _client: mqtt.Client, _userdata: Any) -> None:
        fault = f"{self._broker.host} takes no connection at port {self._broker.port}"
        self._loop.call_soon_threadsafe(self._lost, fault)

    def _on_disconnect(self, _client: mqtt.Client, _userdata: Any, _flags: Any, reason: ReasonCode, _: Any) -> None:
        self._loop.call_soon_threadsafe(self._lost, f"the connection ended: {_said(reason)}")

    def _on_subscribe(
        self, _client: mqtt.Client, _userdata: Any, _mid: int, reasons: list[ReasonCode], _: Properties | None
    ) -> None:
        pairs = zip(self._session.filters, reasons, strict=False)
        refused = tuple(f"{wanted} ({_said(reason)})" for wanted, reason in pairs if reason.is_failure)
        self._loop.call_soon_threadsafe(self._subscribed, refused)

    def _on_message(self, _client: mqtt.Client, _userdata: Any, message: mqtt.MQTTMessage) -> None:
        self._loop.call_soon_threadsafe(self._heard, message.topic, message.payload, message.mid)

    def _wanted(self) -> Any:
        if self._broker.mqtt != 5:
            return [(one, 1) for one in self._session.filters]
        # Retained messages are of no use: they were sent before.
        options = SubscribeOptions(qos=1, retainHandling=SubscribeOptions.RETAIN_DO_NOT_SEND)
        return [(one, options) for one in self._session.filters]

    # The following belong to the event loop.

    def _connected(self, *, session_present: bool) -> None:
        self._connection += 1
        self._is(replace(self.standing, connected_at=self._clock.now(), session_present=session_present, fault=""))

    def _lost(self, fault: str) -> None:
        self._is(replace(self.standing, connected_at=None, bound=0, fault=fault))

    def _subscribed(self, refused: tuple[str, ...]) -> None:
        self._is(replace(self.standing, bound=len(self._session.filters) - len(refused), refused=refused))

    def _heard(self, topic: str, payload: bytes | bytearray, number: int) -> None:
        now = self._clock.now()
        self._is(replace(self.standing, last_at=now))
        self._delivered.put_nowait(Delivered(topic, bytes(payload), now, number, self._connection))

    def _is(self, standing: Standing) -> None:
        self.standing = standing
        self._changed(standing)


def _said(reason: ReasonCode | MQTTErrorCode) -> str:
    return str(reason).lower()


IN_FLIGHT = 500
SESSION_S = 7 * 86_400
KEEPALIVE_S = 30
