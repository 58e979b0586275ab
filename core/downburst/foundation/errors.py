"""The refusals and failures of Downburst, as one tree.

    DownburstError                 500
    ├── BadInput                   400  unusable input
    │   ├── BadName                400  a feed, product id, site or origin breaks the rules of names
    │   ├── BadPattern             422  a regular expression can't be read; knows the position
    │   ├── ImpossiblePin          422  a transport that can't carry the feed to its sites
    │   ├── DigestMismatch         422  the bytes differ from the digest that came with them
    │   ├── TruncatedUpload        400  fewer bytes than announced
    │   ├── TooLarge               413  a product over the feed's limit
    │   ├── RequestTooLarge        413  a body longer than the caller may send
    │   ├── RequestTooSlow         408  a body that did not arrive whole in time
    │   └── BadSettings            400  settings file or environment
    ├── NotFound                   404  unknown feed, site, subscription or plan; carries similar names
    ├── AlreadyThere               409  a name that is taken
    ├── LimitReached               409  the ledger accepts no more rows of a kind; names the limit
    ├── ChangedMeanwhile           412  the object of a change has changed since it was read
    ├── KeyOfAnother               422  an idempotency key used before with another request
    ├── OutcomeUnknown             409  a request with this key is in progress, or its outcome is unknown
    ├── Refused                    403  a right is missing: allow list, token, credential
    │   └── NotSignedIn            401  the caller is not known
    ├── TooMany                    429  too many requests; carries the time of the next attempt
    └── Failure                    500  the hub itself can't do it
        ├── DiskFull               507
        ├── NotWritable            500
        ├── PortInUse              500
        ├── AlreadyRunning         500  another hub holds the data directory
        ├── BrokersAway            503  Kafka did not accept a record in time
        ├── LedgerAway             503  the ledger's database server is away
        ├── FleetAway              503  the manager of the senders can't be reached
        ├── NodeAway               503  the node is not running or did not answer in time
        └── PartAway               503  a part in a process of its own is silent

Raise narrow, catch at the edges: the api turns them into problem documents (RFC 9457), the command line into one
sentence and an exit code.
"""

from typing import ClassVar


class DownburstError(Exception):
    """A whole sentence with the event, its place, and the remedy."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "error"
    title: ClassVar[str] = "Downburst failed"
    exit_code: ClassVar[int] = 1

    def __init__(self, sentence: str, **extra: object) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.extra = extra


class BadInput(DownburstError):
    """Unusable input."""

    status, code, title, exit_code = 400, "bad-request", "The request can't be used", 2


class BadName(BadInput):
    """A name breaks the rules of names."""

    code, title = "bad-id", "The name or id can't be used"


class BadPattern(BadInput):
    """A regular expression that can't be read; `extra["position"]` is the 1-based character."""

    status, code, title = 422, "bad-pattern", "The pattern can't be read"


class ImpossiblePin(BadInput):
    """A transport that can't carry the feed to its sites."""

    status, code, title = 422, "impossible-pin", "The feed can't go by this transport"


class DigestMismatch(BadInput):
    """The bytes differ from the digest that came with them."""

    status, code, title = 422, "digest-mismatch", "The product differs from its digest"


class TruncatedUpload(BadInput):
    """Fewer bytes than announced."""

    code, title = "truncated", "The upload is incomplete"


class TooLarge(BadInput):
    """A product over the limit of its feed."""

    status, code, title = 413, "too-large", "The product is too large"


class RequestTooLarge(BadInput):
    """A body longer than the caller may send; `extra["limit_bytes"]` is the limit."""

    status, code, title = 413, "request-too-large", "The request is too large"


class RequestTooSlow(BadInput):
    """A body that did not arrive whole in time."""

    status, code, title = 408, "request-too-slow", "The request took too long"


class BadSettings(BadInput):
    """The settings file or an environment variable can't be used."""

    code, title = "bad-settings", "The settings can't be used"


class NotFound(DownburstError):
    """An unknown object."""

    status, code, title, exit_code = 404, "not-found", "Not found", 2


class UnknownFeed(NotFound):
    """An unknown feed; `extra["near"]` lists similar names."""

    code, title = "unknown-feed", "Unknown feed"


class AlreadyThere(DownburstError):
    """A name that is taken."""

    status, code, title, exit_code = 409, "already-there", "The name is taken", 2


class LimitReached(DownburstError):
    """The ledger accepts no more rows of a kind; `extra` has `limit` (its name), `most` and `count`."""

    status, code, title, exit_code = 409, "limit-reached", "The limit is reached", 2


class NothingToCompare(DownburstError):
    """A feed without sites or products has no figures to compare transports by."""

    status, code, title, exit_code = 409, "nothing-to-compare", "There is nothing to compare yet", 2


class ChangedMeanwhile(DownburstError):
    """The object of a change has changed since it was read."""

    status, code, title, exit_code = 412, "changed-meanwhile", "It was changed by another request", 2


class KeyOfAnother(BadInput):
    """An idempotency key used before with another request."""

    status, code, title = 422, "key-of-another-request", "The key belongs to another request"


class OutcomeUnknown(DownburstError):
    """A request with the same key is in progress, or its outcome is unknown, or its answer can't be repeated."""

    status, code, title = 409, "outcome-unknown", "The request was already made"


class CircuitConflict(DownburstError):
    """A port has no room in a window; `extra["circuits"]` lists those that hold it."""

    status, code, title, exit_code = 409, "circuit-conflict", "The circuit does not fit", 2


class TagsTaken(CircuitConflict):
    """A port or link has no acceptable tag free in a window."""


class Refused(DownburstError):
    """A right is missing."""

    status, code, title = 403, "refused", "Not allowed"


class NotSignedIn(Refused):
    """The caller is not known."""

    status, code, title, exit_code = 401, "not-signed-in", "Sign in first", 2


class TooMany(DownburstError):
    """Too many requests; `extra["retry_after_s"]` is the time until the next attempt."""

    status, code, title = 429, "too-many", "Too many requests"


class Failure(DownburstError):
    """The hub itself can't do it."""

    code, title = "failure", "The hub can't do this"


class DiskFull(Failure):
    """No room left."""

    status, code, title = 507, "disk-full", "The disk is full"


class NotWritable(Failure):
    """A directory the hub may not write to."""

    code, title = "not-writable", "The directory is not writable"


class PortInUse(Failure):
    """Another process listens there."""

    code, title = "port-in-use", "The port is in use"


class AlreadyRunning(Failure):
    """Another hub holds the data directory."""

    code, title = "already-running", "Another hub is running"


class BrokersAway(Failure):
    """Kafka did not accept a record in time."""

    status, code, title = 503, "brokers-away", "Kafka is unavailable"


class LedgerAway(Failure):
    """The ledger's database server is away; the request was not carried out."""

    status, code, title = 503, "ledger-away", "The ledger is unavailable"


class FleetAway(Failure):
    """The manager of the senders, for example Kubernetes' API server, did not answer or refused for now."""

    status, code, title = 503, "fleet-away", "The senders can't be managed"


class NotFetched(Failure):
    """An announced product could not be fetched; no further attempt is made by itself."""

    status, code, title = 502, "not-fetched", "The product could not be fetched"


class NotKept(Failure):
    """The log no longer has the bytes of a product."""

    status, code, title = 410, "not-kept", "The product is no longer kept"


class NodeAway(Failure):
    """The node is not running or did not answer in time."""

    status, code, title = 503, "node-away", "The node is unavailable"


class PartAway(Failure):
    """A part in a process of its own did not respond; it is unknown whether it carried out the request."""

    status, code, title = 503, "part-away", "A part of the hub is unavailable"


def from_node(code: str, sentence: str, position: int | None = None) -> DownburstError:
    """The error for a refusal by the node."""
    kind = _BY_NODE_CODE.get(code, Failure)
    extra = {} if position is None else {"position": position}
    return kind(sentence, **extra)


_BY_NODE_CODE: dict[str, type[DownburstError]] = {
    "unknown-feed": UnknownFeed,
    "bad-id": BadName,
    "too-large": TooLarge,
    "digest-mismatch": DigestMismatch,
    "disk-full": DiskFull,
    "not-writable": NotWritable,
    "port-in-use": PortInUse,
    "bad-pattern": BadPattern,
    "bad-request": BadInput,
    # Of a node that was restarted, while its first job is on the way.
    "not-started": NodeAway,
    "truncated": TruncatedUpload,
    "not-up": CircuitConflict,
    "not-fetched": NotFetched,
    "not-kept": NotKept,
    "brokers-away": BrokersAway,
    "not-the-writer": AlreadyRunning,
}
