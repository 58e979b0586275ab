"""How receivers are told: a webhook, an Alertmanager, a mail."""

import asyncio
import smtplib
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.message import EmailMessage
from ipaddress import ip_address
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import httpx

from downburst.alarm_settings import AlarmSettings
from downburst.alarms import Alarm, Receiver, ReceiverKind
from downburst.errors import Failure


class Teller(Protocol):
    """What tells a receiver; raises `Failure` if it can't be reached."""

    async def tell(self, receiver: Receiver, alarm: Alarm, now: datetime) -> None:
        """Tells of an alarm's beginning, or of its end if it has ended."""


@dataclass(frozen=True, slots=True)
class NetworkTeller:
    """Tells over the network."""

    hub: str
    settings: AlarmSettings
    transport: httpx.AsyncBaseTransport | None = None

    async def tell(self, receiver: Receiver, alarm: Alarm, now: datetime) -> None:
        """Tells of an alarm's beginning, or of its end if it has ended."""
        match receiver.kind:
            case ReceiverKind.WEBHOOK:
                await self._post(receiver, receiver.address, webhook_body(self.hub, alarm))
            case ReceiverKind.ALERTMANAGER:
                address = receiver.address.rstrip("/") + "/api/v2/alerts"
                await self._post(receiver, address, [alertmanager_body(self.hub, alarm, now)])
            case ReceiverKind.MAIL:
                await asyncio.to_thread(self._mail, receiver, mail(self.hub, alarm, receiver, self.settings))

    async def _post(self, receiver: Receiver, address: str, body: object) -> None:
        if receiver.owner is not None and not self.settings.site_webhooks_inside:
            await _check_outside(receiver, address)
        try:
            async with httpx.AsyncClient(timeout=ANSWER_S, transport=self.transport) as client:
                answer = await client.post(address, json=body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _unreached(receiver, str(error) or type(error).__name__) from None
        if not answer.is_success:
            raise _unreached(receiver, f"it answered {answer.status_code}")

    def _mail(self, receiver: Receiver, message: EmailMessage) -> None:
        parts = urlsplit(self.settings.smtp_url)
        if not parts.hostname:
            raise _unreached(receiver, "the setting alarms.smtp_url names no server")
        kind = smtplib.SMTP_SSL if parts.scheme == "smtps" else smtplib.SMTP
        try:
            with kind(parts.hostname, parts.port or 0, timeout=ANSWER_S) as server:
                if parts.scheme == "smtp" and server.has_extn("starttls"):
                    server.starttls()
                if parts.username is not None:
                    server.login(unquote(parts.username), unquote(parts.password or ""))
                server.send_message(message)
        except (OSError, smtplib.SMTPException) as error:
            raise _unreached(receiver, str(error) or type(error).__name__) from None


async def _check_outside(receiver: Receiver, address: str) -> None:
    """Whoever administers a site must not make the hub speak to what only the hub can reach."""
    parts = urlsplit(address)
    try:
        loop, port = asyncio.get_running_loop(), parts.port or (443 if parts.scheme == "https" else 80)
        found = await loop.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:
        raise _unreached(receiver, str(error)) from None
    if not all(ip_address(one[4][0]).is_global for one in found):
        raise _unreached(
            receiver, "its address is not a public one, which receivers of sites need (alarms.site_webhooks_inside)"
        )


def webhook_body(hub: str, alarm: Alarm) -> Mapping[str, Any]:
    """What a webhook gets; names here are promises."""
    return {
        "hub": hub,
        "alarm": alarm.number,
        "state": "firing" if alarm.ended_at is None else "ended",
        "kind": alarm.kind.value,
        "feed": alarm.feed,
        "site": alarm.site,
        "sentence": alarm.sentence,
        "next": alarm.next_step,
        "since": alarm.since.isoformat(),
        "ended_at": None if alarm.ended_at is None else alarm.ended_at.isoformat(),
        # Chat services show this member of whatever they get.
        "text": headline(hub, alarm),
    }


def alertmanager_body(hub: str, alarm: Alarm, now: datetime) -> Mapping[str, Any]:
    """An alert of the Alertmanager's API v2; it ends there by itself unless it is told again."""
    labels = {"alertname": f"Downburst {alarm.kind.value}", "hub": hub, "kind": alarm.kind.value}
    named = {"feed": alarm.feed, "site": alarm.site, "subject": alarm.subject}
    ends_at = alarm.ended_at or now + timedelta(seconds=ALERTMANAGER_HOLDS_S)
    return {
        "labels": labels | {name: value for name, value in named.items() if value},
        "annotations": {"summary": alarm.sentence, "next": alarm.next_step},
        "startsAt": alarm.since.isoformat(),
        "endsAt": ends_at.isoformat(),
    }


def mail(hub: str, alarm: Alarm, receiver: Receiver, settings: AlarmSettings) -> EmailMessage:
    """A mail that is read on a telephone."""
    message = EmailMessage()
    message["Subject"] = " ".join(headline(hub, alarm).split())[:200]
    message["From"], message["To"] = settings.mail_from, receiver.address
    ended = "" if alarm.ended_at is None else f"\nEnded {alarm.ended_at:%Y-%m-%d %H:%M:%S} UTC"
    since = f"Since {alarm.since:%Y-%m-%d %H:%M:%S} UTC"
    message.set_content(f"{alarm.sentence}\n\nNext: {alarm.next_step}\n\n{since}{ended}\n")
    return message


def headline(hub: str, alarm: Alarm) -> str:
    """One line that says it all."""
    return f"[{hub}] {'over: ' if alarm.ended_at is not None else ''}{alarm.sentence}"


def _unreached(receiver: Receiver, reason: str) -> Failure:
    return Failure(
        f"the receiver {receiver.name} can't be told by {receiver.kind.value}: {reason}; "
        f"try it with `downburst alarms test {receiver.name}`"
    )


ANSWER_S = 10.0
ALERTMANAGER_HOLDS_S = 300.0
"""So long an alert stands there after it was told last; it is told each minute."""
