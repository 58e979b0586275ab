"""Notices to receivers: by webhook, to an Alertmanager, by mail."""

import asyncio
import smtplib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.message import EmailMessage
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import httpx

from downburst.domain.alarms import Alarm, Receiver, ReceiverKind
from downburst.foundation.errors import Failure
from downburst.network.pinned import NotPublic, PublicTransport
from downburst.network.receiver_addresses import check_address
from downburst.settings.alarms import AlarmSettings


class Teller(Protocol):
    """Notifies a receiver; raises `Failure` if it can't be reached."""

    async def tell(self, receiver: Receiver, alarm: Alarm, now: datetime) -> None:
        """Sends a notice of an alarm's beginning, or of its end if it has ended."""


@dataclass(frozen=True, slots=True)
class NetworkTeller:
    """Sends notices over the network."""

    hub: str
    settings: AlarmSettings
    transport: httpx.AsyncBaseTransport | None = None

    async def tell(self, receiver: Receiver, alarm: Alarm, now: datetime) -> None:
        """Sends a notice of an alarm's beginning, or of its end if it has ended."""
        # The ledger may hold addresses that an earlier release accepted.
        check_address(receiver.kind, receiver.address)
        match receiver.kind:
            case ReceiverKind.WEBHOOK:
                await self._post(receiver, receiver.address, webhook_body(self.hub, alarm))
            case ReceiverKind.ALERTMANAGER:
                address = receiver.address.rstrip("/") + "/api/v2/alerts"
                await self._post(receiver, address, [alertmanager_body(self.hub, alarm, now)])
            case ReceiverKind.MAIL:
                await asyncio.to_thread(self._mail, receiver, mail(self.hub, alarm, receiver, self.settings))

    async def _post(self, receiver: Receiver, address: str, body: object) -> None:
        try:
            # Each read has a timeout of its own; an answer sent byte by byte needs one for the whole.
            async with (
                asyncio.timeout(WHOLE_ANSWER_S),
                httpx.AsyncClient(timeout=ANSWER_S, transport=self._way_to(receiver)) as client,
                # The answer's body is never read, of any length; redirections are not followed.
                client.stream("POST", address, json=body, follow_redirects=False) as answer,
            ):
                if not answer.is_success:
                    raise _unreached(receiver, f"it answered {answer.status_code}")
        except NotPublic:
            reason = "its address is not public, as receivers of sites must be (alarms.site_webhooks_inside)"
            raise _unreached(receiver, reason) from None
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            raise _unreached(receiver, str(error) or type(error).__name__) from None

    def _way_to(self, receiver: Receiver) -> httpx.AsyncBaseTransport | None:
        """A site's administrator must not make the hub connect to addresses that only the hub can reach."""
        if self.transport is None and receiver.owner is not None and not self.settings.site_webhooks_inside:
            return PublicTransport()
        return self.transport

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


def webhook_body(hub: str, alarm: Alarm) -> Mapping[str, Any]:
    """The body for a webhook; its names are stable."""
    return {
        "hub": hub,
        "alarm": alarm.number,
        "state": "firing" if alarm.ended_at is None else "ended",
        "kind": alarm.kind.value,
        "severity": alarm.severity.value,
        "feed": alarm.feed,
        "site": alarm.site,
        "sentence": alarm.sentence,
        "next": alarm.next_step,
        "since": alarm.since.isoformat(),
        "ended_at": None if alarm.ended_at is None else alarm.ended_at.isoformat(),
        # Chat services show this member of any document.
        "text": headline(hub, alarm),
    }


def alertmanager_body(hub: str, alarm: Alarm, now: datetime) -> Mapping[str, Any]:
    """An alert of the Alertmanager's API v2; it ends there by itself unless it is repeated."""
    labels = {"alertname": f"Downburst {alarm.kind.value}", "hub": hub, "kind": alarm.kind.value}
    labels["severity"] = alarm.severity.value
    named = {"feed": alarm.feed, "site": alarm.site, "subject": alarm.subject}
    ends_at = alarm.ended_at or now + timedelta(seconds=ALERTMANAGER_HOLDS_S)
    return {
        "labels": labels | {name: value for name, value in named.items() if value},
        "annotations": {"summary": alarm.sentence, "next": alarm.next_step},
        "startsAt": alarm.since.isoformat(),
        "endsAt": ends_at.isoformat(),
    }


def mail(hub: str, alarm: Alarm, receiver: Receiver, settings: AlarmSettings) -> EmailMessage:
    """A mail in a form for a telephone."""
    message = EmailMessage()
    message["Subject"] = " ".join(headline(hub, alarm).split())[:200]
    message["From"], message["To"] = settings.mail_from, receiver.address
    ended = "" if alarm.ended_at is None else f"\nEnded {alarm.ended_at:%Y-%m-%d %H:%M:%S} UTC"
    since = f"Since {alarm.since:%Y-%m-%d %H:%M:%S} UTC"
    message.set_content(f"{alarm.sentence}\n\nNext: {alarm.next_step}\n\n{since}{ended}\n")
    return message


def headline(hub: str, alarm: Alarm) -> str:
    """One line with all essentials."""
    return f"[{hub}] {'over' if alarm.ended_at is not None else alarm.severity.value}: {alarm.sentence}"


def _unreached(receiver: Receiver, reason: str) -> Failure:
    return Failure(
        f"the receiver {receiver.name} can't be notified by {receiver.kind.value}: {' '.join(reason.split())[:300]}"
    )


ANSWER_S = 10.0
WHOLE_ANSWER_S = 15.0
ALERTMANAGER_HOLDS_S = 300.0
"""Lifetime of an alert in the Alertmanager after its last notice; notices are repeated each minute."""
