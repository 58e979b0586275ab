"""Notifications to a broker, each until the broker has answered."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from downburst.domain.bridges import Broker
from downburst.foundation.clock import Clock
from downburst.foundation.errors import Failure
from downburst_bridges.connection import KEEPALIVE_S, Changed, Connection, said


class NotAnnounced(Failure):
    """The broker did not take a notification; it is tried again."""

    status, code, title = 502, "not-announced", "The notification was not announced"


class Outlet(Connection):
    """A connection for notifications. All methods belong to the event loop."""

    def __init__(
        self,
        broker: Broker,
        *,
        client_id: str,
        clock: Clock,
        changed: Changed = lambda _now: None,
        ca_file: Path | None = None,
    ) -> None:
        self._waiting: dict[int, asyncio.Future[str]] = {}
        """By the number of their packets. An answer is heard in the loop's next turn at the earliest."""
        self._is_connected = asyncio.Event()
        super().__init__(broker, client_id, clock, changed, keeps_session=False, ca_file=ca_file)
        self.client.max_inflight_messages_set(IN_FLIGHT)
        self.client.on_publish = self._on_publish

    def start(self) -> None:
        """Connects, and comes back after each loss with growing pauses."""
        self.client.connect_async(self.broker.host, self.broker.port, keepalive=KEEPALIVE_S, clean_start=True)
        self.client.loop_start()

    async def is_connected(self) -> None:
        """Waits for a connection."""
        await self._is_connected.wait()

    async def announce(self, topic: str, payload: bytes) -> None:
        """Publishes, and returns once the broker has the notification for somebody; raises `NotAnnounced`."""
        if not self._is_connected.is_set():
            raise NotAnnounced(f"the broker is away: {self.standing.fault}")
        sent = self.client.publish(topic, payload, qos=1, retain=False)
        if sent.rc != mqtt.MQTT_ERR_SUCCESS:
            raise NotAnnounced(f"the broker is away: {mqtt.error_string(sent.rc).lower()}")
        waiting = self._waiting[sent.mid] = self.loop.create_future()
        try:
            async with asyncio.timeout(ANSWER_S):
                refusal = await waiting
        except TimeoutError:
            raise NotAnnounced(f"the broker has not answered within {ANSWER_S:.0f} s") from None
        finally:
            self._waiting.pop(sent.mid, None)
        if refusal:
            raise NotAnnounced(refusal)
        self.is_now(replace(self.standing, last_at=self.clock.now()))

    def connected(self) -> None:
        """Notifications may go."""
        self._is_connected.set()

    def lost(self, fault: str) -> None:
        """The library sends those without an answer again by itself, with the same id, and so does the outbox."""
        self._is_connected.clear()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(fault)

    # Called by paho's thread.
    def _on_publish(
        self, _client: mqtt.Client, _userdata: Any, number: int, reason: ReasonCode, _: Properties | None
    ) -> None:
        self.loop.call_soon_threadsafe(self._answered, number, _refusal(reason))

    def _answered(self, number: int, refusal: str) -> None:
        waiting = self._waiting.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(refusal)


def _refusal(reason: ReasonCode) -> str:
    """Only 0 is an announcement: with 16 the broker has thrown the notification away, as no client is subscribed."""
    if reason.value == 0:
        return ""
    if reason.value == NO_SUBSCRIBER:
        return "no client is subscribed at the broker, as a Global Broker would be"
    return f"the broker refuses it: {said(reason)} ({reason.value})"


NO_SUBSCRIBER = 16
IN_FLIGHT = 100
ANSWER_S = 60.0
