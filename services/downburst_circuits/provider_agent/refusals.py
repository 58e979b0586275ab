"""Refusals with the error ids of the Connection Service, one sentence each."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from downburst.foundation.errors import BadInput, CircuitConflict, DownburstError, NotFound, TagsTaken
from downburst_circuits.nsi.words import ServiceException


class ErrorId(StrEnum):
    """The error ids of GFD.237, as SuPA and OpenNSA use them."""

    PAYLOAD = "00100"
    MISSING = "00101"
    """A parameter is missing or repeated."""
    UNSUPPORTED = "00102"
    TRANSITION = "00201"
    UNKNOWN_CONNECTION = "00203"
    INTERNAL = "00500"
    UNAVAILABLE = "00600"
    UNKNOWN_STP = "00701"
    STP_UNAVAILABLE = "00704"
    CAPACITY = "00705"
    DIRECTIONALITY = "00706"
    LABEL_FORMAT = "00709"


class NsiRefusal(DownburstError):
    """A request that this provider refuses."""

    def __init__(self, error_id: ErrorId, sentence: str) -> None:
        super().__init__(sentence)
        self.error_id = error_id

    def exception(self, nsa: str, connection_id: str | None = None) -> ServiceException:
        """As the requester is told."""
        shown = "".join(char if char.isprintable() else " " for char in self.sentence[:SENTENCE_CHARS_MAX])
        return ServiceException(self.error_id, shown, nsa, connection_id)


@contextmanager
def refused_as(error_id: ErrorId) -> Iterator[None]:
    """Gives bad input another error id."""
    try:
        yield
    except BadInput as error:
        raise NsiRefusal(error_id, error.sentence) from None


def refusal_of(error: DownburstError, otherwise: ErrorId = ErrorId.INTERNAL) -> NsiRefusal:
    """The refusal behind an error of the calendar or of the circuit service."""
    if isinstance(error, NsiRefusal):
        return error
    found = next((error_id for kind, error_id in _KINDS if isinstance(error, kind)), otherwise)
    return NsiRefusal(found, error.sentence)


SENTENCE_CHARS_MAX = 1_000
_KINDS: tuple[tuple[type[DownburstError], ErrorId], ...] = (
    (TagsTaken, ErrorId.STP_UNAVAILABLE),
    (CircuitConflict, ErrorId.CAPACITY),
    (NotFound, ErrorId.UNKNOWN_CONNECTION),
    (BadInput, ErrorId.UNSUPPORTED),
)
