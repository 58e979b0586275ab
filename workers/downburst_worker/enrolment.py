"""Enrolment with tokens and replacement of credentials: the ledger's decisions go to the node."""

import base64
import logging
import secrets
from collections.abc import Awaitable, Callable
from datetime import timedelta
from hashlib import sha256

from downburst.bus.port import Bus
from downburst.domain.credentials import EnrolmentToken
from downburst.domain.events import SitesChanged
from downburst.foundation.clock import to_us
from downburst.foundation.errors import DownburstError, LedgerAway
from downburst.ledger import Ledger
from downburst_worker.node import Line, NodeProcess


class Enrolment:
    """Answers the node's queries about tokens and credentials."""

    def __init__(
        self,
        ledger: Ledger,
        node: NodeProcess,
        bus: Bus,
        *,
        apply_sites: Callable[[], Awaitable[None]],
        credential_lifetime: timedelta,
    ) -> None:
        self._ledger = ledger
        self._node = node
        self._bus = bus
        self._apply_sites = apply_sites
        self._credential_lifetime = credential_lifetime

    async def new_token(
        self, site: str, *, lifetime: timedelta, credential_lifetime: timedelta | None
    ) -> tuple[str, EnrolmentToken]:
        """A token's secret, shown once, and the stored part."""
        text = base64.urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode()
        # The receiver presents the hash of the text it was given, and never decodes it.
        hashed = sha256(text.encode()).hexdigest()
        lasts = credential_lifetime or self._credential_lifetime
        kept = await self._ledger.write(
            lambda tx: tx.enrolment.tokens.add(site, hashed, lifetime=lifetime, credential_lifetime=lasts)
        )
        return text, kept

    async def hear(self, line: Line) -> None:
        """Handles a query or a report of the node."""
        match line["event"]:
            case "enrol":
                await self._enrol(line)
            case "credential-offered":
                await self._offered(line)
            case _:
                await self._taken(line)

    async def _enrol(self, line: Line) -> None:
        """Enrols a receiver that presents a token and the hash of its future credential."""
        token, credential, peer = line["secret_sha256"], line["credential_sha256"], line["peer"]
        try:
            site = await self._ledger.write(
                lambda tx: tx.enrolment.tokens.consume(token, credential, peer=peer), patience_s=ENROL_S
            )
        except LedgerAway as error:
            # A refusal would make the receiver give up; without an answer it tries again.
            _LOG.warning("the receiver at %s got no answer: %s", peer, error.sentence)
            return
        except DownburstError as error:
            await self._refuse(line, error)
            return
        # The node must know the credential before the receiver, which presents it immediately.
        await self._apply_sites()
        await self._node.request("enrol-answer", ask=line["ask"], ok=True, site=site.name)
        self._bus.publish(SitesChanged())

    async def _offered(self, line: Line) -> None:
        """Answers a connected receiver that offers a new credential in place of its present one."""
        site, current, peer = line["site"], line["credential_sha256"], line["peer"]
        offered, lifetime = line["offered_sha256"], self._credential_lifetime
        try:
            kept = await self._ledger.write(
                lambda tx: tx.enrolment.credentials.replace(site, current, offered, peer=peer, lifetime=lifetime),
                patience_s=ENROL_S,
            )
        except DownburstError as error:
            # The receiver keeps its present one, and the node asks it again.
            _LOG.warning("the credential of %s was not replaced: %s", site, error.sentence)
            await self._refuse(line, error)
            return
        await self._apply_sites()
        ends = None if kept.expires_at is None else to_us(kept.expires_at)
        await self._node.request("enrol-answer", ask=line["ask"], ok=True, site=site, ends_us=ends)
        self._bus.publish(SitesChanged())

    async def _taken(self, line: Line) -> None:
        """Ends the old credential when a receiver presents the new one; the node repeats its report until then."""
        site, sha256 = line["site"], line["credential_sha256"]
        try:
            is_news = await self._ledger.write(
                lambda tx: tx.enrolment.credentials.taken(site, sha256), patience_s=ENROL_S
            )
        except LedgerAway as error:
            _LOG.warning("the former credential of %s stays good for now: %s", site, error.sentence)
            return
        if is_news:
            _LOG.info("the credential of %s was replaced", site)
            await self._apply_sites()
            self._bus.publish(SitesChanged())

    async def _refuse(self, line: Line, error: DownburstError) -> None:
        await self._node.request("enrol-answer", ask=line["ask"], ok=False, sentence=error.sentence, code="token")


_LOG = logging.getLogger("downburst.agent")
ENROL_S = 3.0
"""A receiver without an answer asks again."""
