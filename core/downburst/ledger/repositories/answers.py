"""Answers to requests with an idempotency key, kept for a day."""

from dataclasses import asdict, dataclass
from datetime import timedelta

from sqlalchemy import Connection, delete, insert, select, update

from downburst.foundation.clock import Clock
from downburst.ledger.storage import limits
from downburst.ledger.tables.processes import answers


@dataclass(frozen=True, slots=True)
class Answered:
    """A request that was made under a key."""

    key_sha256: str
    """Hash of the caller, the operation and the key."""
    request_sha256: str
    status: int | None = None
    """None: it is in progress, or its process ended before an answer."""
    body: str | None = None
    """None: the answer holds a secret, which is sent once."""
    etag: str = ""
    tenant: str = ""
    """The tenant whose budget it counts against: a site, a user or token, or an address."""


class Answers:
    """Keys and answers."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def begin(self, wanted: Answered) -> Answered | None:
        """Takes a key for a request; if it is taken, returns the earlier request under it."""
        now = self._clock.now()
        self._connection.execute(delete(answers).where(answers.c.at < now - KEPT))
        found = self._connection.execute(
            select(*(answers.c[name] for name in asdict(wanted))).where(answers.c.key_sha256 == wanted.key_sha256)
        ).one_or_none()
        if found is not None:
            return Answered(**found._mapping)
        self._check_limits(wanted.tenant)
        self._connection.execute(insert(answers).values(asdict(wanted) | {"at": now}))
        return None

    def end(self, answered: Answered) -> None:
        """Stores the answer."""
        values = asdict(answered)
        self._connection.execute(
            update(answers).where(answers.c.key_sha256 == values.pop("key_sha256")).values(values)
        )

    def prove(self) -> None:
        """Writes a dummy row: its commit shows that the ledger accepts writes."""
        self.give_back(_PROOF)
        values = asdict(Answered(_PROOF, "", etag="")) | {"at": self._clock.now()}
        self._connection.execute(insert(answers).values(values))

    def give_back(self, key_sha256: str) -> None:
        """Frees a key after its request was not carried out."""
        self._connection.execute(delete(answers).where(answers.c.key_sha256 == key_sha256))

    def _check_limits(self, tenant: str) -> None:
        own, of_tenant = limits.KEYS_OF_TENANT, answers.c.tenant == tenant
        if tenant.startswith(STRANGERS):
            own = limits.KEYS_OF_STRANGER
            strangers = answers.c.tenant.startswith(STRANGERS)
            limits.KEYS_OF_STRANGERS.check(self._connection, answers, strangers, holder="this hub")
        own.check(self._connection, answers, of_tenant, holder=f"the {tenant}" if tenant else "this hub")


STRANGERS = "address "
"""Prefix of the names of tenants without a login."""
_PROOF = "probe"
KEPT = timedelta(hours=24)
