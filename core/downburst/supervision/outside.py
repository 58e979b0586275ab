"""Signals to the outside that the process works: to systemd's watchdog, and to a dead man's switch."""

import logging
import os
import socket

import httpx

_LOG = logging.getLogger("downburst.supervision")


def tell_systemd(state: str) -> None:
    """Notifies the service manager, if there is one: `READY=1`, `WATCHDOG=1`, `STOPPING=1`."""
    place = os.environ.get("NOTIFY_SOCKET", "")
    if not place:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sending:
            # An address that begins with @ is abstract and has no file.
            sending.sendto(state.encode(), "\0" + place[1:] if place.startswith("@") else place)
    except OSError as error:
        _LOG.warning("systemd can't be notified of %s: %s", state, error.strerror)


class DeadMan:
    """An external address that is called while all is well, and raises an alarm of its own when the calls stop."""

    def __init__(self, url: str, every_s: float, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._url = url
        self._every_s = every_s
        self._transport = transport
        self._told_s: float | None = None

    async def tell(self, now_s: float) -> None:
        """Calls the address, at most once every `every_s` seconds; a failed call is retried in the next round."""
        if not self._url or (self._told_s is not None and now_s - self._told_s < self._every_s):
            return
        try:
            async with (
                httpx.AsyncClient(timeout=ANSWER_S, transport=self._transport) as client,
                client.stream("POST", self._url, follow_redirects=False) as answer,
            ):
                answer.raise_for_status()
        except httpx.HTTPError as error:
            _LOG.warning("alarms.dead_man_url does not answer: %s", str(error) or type(error).__name__)
            return
        self._told_s = now_s


ANSWER_S = 5.0
