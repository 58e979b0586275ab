"""A connection to a broker, by paho-mqtt in a thread of its own; its state and faults are those of the event loop."""

import asyncio
import ssl
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from downburst.domain.bridges import Broker, Standing
from downburst.foundation.clock import Clock
from downburst_bridges.faults import fault_of

Changed = Callable[[Standing], None]


class Connection:
    """What subscriptions and outlets have in common. All methods and callbacks belong to the event loop."""

    def __init__(
        self,
        broker: Broker,
        client_id: str,
        clock: Clock,
        changed: Changed,
        *,
        keeps_session: bool,
        ca_file: Path | None,
    ) -> None:
        self.broker, self.clock = broker, clock
        self._changed = changed
        self.loop = asyncio.get_running_loop()
        self.standing = Standing()
        self._refusal = ""
        """Of the last attempt: the end of the connection follows it, and is not the reason."""
        self.client = self._made(client_id, keeps_session=keeps_session, ca_file=ca_file)

    async def stop(self) -> None:
        """Disconnects."""
        self.client.disconnect()
        await asyncio.to_thread(self.client.loop_stop)

    def connected(self) -> None:
        """The broker has taken the connection."""

    def lost(self, fault: str) -> None:
        """There is no connection any more, or still none."""

    def is_now(self, standing: Standing) -> None:
        """Takes a new state."""
        self.standing = standing
        self._changed(standing)

    def _made(self, client_id: str, *, keeps_session: bool, ca_file: Path | None) -> mqtt.Client:
        is_5, path = self.broker.mqtt == 5, self.broker.websocket_path
        client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id,
            clean_session=None if is_5 else not keeps_session,
            protocol=MQTTProtocolVersion.MQTTv5 if is_5 else MQTTProtocolVersion.MQTTv311,
            transport="tcp" if path is None else "websockets",
            manual_ack=keeps_session,
        )
        client.username_pw_set(self.broker.user, self.broker.password)
        if path is not None:
            client.ws_set_options(path)
        if self.broker.is_encrypted:
            client.tls_set_context(_trusting(ca_file))
        client.reconnect_delay_set(min_delay=1, max_delay=60)
        client.on_connect, client.on_connect_fail = self._on_connect, self._on_connect_fail
        client.on_disconnect = self._on_disconnect
        return client

    # The following are called by paho's thread.

    def _on_connect(
        self, _client: mqtt.Client, _userdata: Any, flags: mqtt.ConnectFlags, reason: ReasonCode, _: Properties | None
    ) -> None:
        refusal = f"the broker refuses user {self.broker.user}: {said(reason)}" if reason.is_failure else ""
        self.loop.call_soon_threadsafe(partial(self._came, refusal, session_present=flags.session_present))

    def _on_connect_fail(self, _client: mqtt.Client, _userdata: Any) -> None:
        # The library calls this while it handles the error, and does not pass it on.
        fault = fault_of(self.broker, sys.exception())
        self.loop.call_soon_threadsafe(partial(self._went, fault))

    def _on_disconnect(self, _client: mqtt.Client, _userdata: Any, _flags: Any, reason: ReasonCode, _: Any) -> None:
        self.loop.call_soon_threadsafe(self._went, f"the connection ended: {said(reason)}")

    # The following belong to the event loop.

    def _came(self, refusal: str, *, session_present: bool) -> None:
        self._refusal = refusal
        if refusal:
            self.is_now(replace(self.standing, connected_at=None, fault=refusal))
            return
        now = self.clock.now()
        self.is_now(replace(self.standing, connected_at=now, session_present=session_present, fault=""))
        self.connected()

    def _went(self, fault: str) -> None:
        fault, self._refusal = self._refusal or fault, ""
        self.lost(fault)
        self.is_now(replace(self.standing, connected_at=None, bound=0, fault=fault))


def _trusting(ca_file: Path | None) -> ssl.SSLContext:
    """Trusts the system's authorities, and those in a file."""
    context = ssl.create_default_context()
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context


def said(reason: ReasonCode | MQTTErrorCode) -> str:
    """A reason in a sentence."""
    return str(reason).lower()


KEEPALIVE_S = 30
