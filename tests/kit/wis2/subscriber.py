"""A subscriber with a durable session, as a Global Broker is."""

import json
from queue import Queue
from typing import Any, Self

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from kit.patience import wait_for
from kit.wis2.mosquitto import Mosquitto


class Heard:
    """Subscribed to everything that nodes announce. It comes back after each loss of its connection."""

    def __init__(self, broker: Mosquitto, user: str = "everyone") -> None:
        self._messages: Queue[dict[str, Any]] = Queue()
        self._is_subscribed = False
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2, "global-broker", protocol=MQTTProtocolVersion.MQTTv5)
        self._client.username_pw_set(user, user)
        self._client.reconnect_delay_set(min_delay=1, max_delay=1)
        self._client.on_connect = lambda client, *_: client.subscribe("origin/a/wis2/#", qos=1)
        self._client.on_subscribe = self._subscribed
        self._client.on_message = lambda _client, _userdata, message: self._messages.put(json.loads(message.payload))
        kept = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        kept.SessionExpiryInterval = 3_600
        self._client.connect_async("127.0.0.1", broker.port, clean_start=False, properties=kept)

    def next(self, count: int) -> list[dict[str, Any]]:
        """The next notifications."""
        found: list[dict[str, Any]] = []
        while len(found) < count:
            wait_for(f"{count - len(found)} notifications", lambda: not self._messages.empty(), 60)
            found.append(self._messages.get())
        return found

    def __enter__(self) -> Self:
        self._client.loop_start()
        wait_for("a subscription", lambda: self._is_subscribed, 60)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _subscribed(self, *_: object) -> None:
        self._is_subscribed = True
