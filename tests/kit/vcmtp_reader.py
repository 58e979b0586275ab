"""Another reader of VCMTP's datagrams, written from ``docs/protocol.md`` alone: the document must suffice."""

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass

import cbor2
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

HEADER_BYTES = 14
MANIFEST, BLOCK, HEAD, PROOF, LIST = 1, 2, 3, 8, 9
CLASSES = ("Warning", "Observation", "Grid", "Bulk")
SYMBOL_BIT, NOTICE_BITS = 1 << 63, 3 << 62


@dataclass(frozen=True)
class Leg:
    """The knowledge of a member of the group."""

    leg: int
    epoch: int
    key_id: int
    key: bytes

    def open(self, datagram: bytes) -> tuple[int, bytes]:
        """The packet number and the payload; raises where the datagram is not this leg's."""
        header = datagram[:HEADER_BYTES]
        if header[0] != 0xD1 or header[1] != self.key_id or int.from_bytes(header[2:6], "big") != self.leg:
            raise ValueError("the datagram belongs to another leg")
        nonce = self.epoch.to_bytes(8, "big")[4:] + header[6:]
        return int.from_bytes(header[6:], "big"), AESGCM(self.key).decrypt(nonce, datagram[HEADER_BYTES:], header)

    def signed(self, body: bytes) -> bytes:
        """The content that a proof's signature covers."""
        return b"downburst vcmtp proof 1" + self.leg.to_bytes(4, "big") + self.epoch.to_bytes(8, "big") + body


@dataclass(frozen=True)
class Proof:
    """A proof of the sender."""

    body: bytes
    seal: bytes
    macs: int
    first: int
    count: int
    controls: dict[int, bytes]
    symbols: dict[int, bytes]

    @classmethod
    def read(cls, frame: bytes) -> "Proof":
        """The frame's body, not checked."""
        first, count = int.from_bytes(frame[:8], "big"), int.from_bytes(frame[8:10], "big")
        macs, controls_end = frame[19], 22 + 18 * int.from_bytes(frame[20:22], "big")
        seal_at = len(frame) - (12 * macs if macs else 64)
        controls = {first + int.from_bytes(entry[:2], "big"): entry[2:] for entry in _cut(frame[22:controls_end], 18)}
        symbols = {int.from_bytes(entry[:8], "big"): entry[8:] for entry in _cut(frame[controls_end:seal_at], 24)}
        return cls(frame[:seal_at], frame[seal_at:], macs, first, count, controls, symbols)

    def is_signed(self, leg: Leg, sender_key: bytes) -> bool:
        """True if its signature is the sender's."""
        try:
            Ed25519PublicKey.from_public_bytes(sender_key).verify(self.seal, leg.signed(self.body))
        except InvalidSignature:
            return False
        return True

    def has_mac(self, leg: Leg, slot: int, secret: bytes) -> bool:
        """True if one of its MACs convinces this site."""
        said = hashlib.sha256(leg.signed(self.body)).digest()
        mac = slot.to_bytes(2, "big") + hmac.digest(secret, said, "sha256")[:10]
        return mac in list(_cut(self.seal, 12))


@dataclass(frozen=True)
class PendingRepair:
    """A repair that was announced to the group."""

    first: int
    packets: int
    symbols: int
    within_ms: int


def content_hash(payload: bytes) -> bytes:
    """The hash of a payload in proofs."""
    return hashlib.sha256(payload).digest()[:16]


def frames(payload: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind and body of each frame behind ``announced``."""
    rest = payload[8:]
    while rest and rest[0] != 0:
        end = 3 + int.from_bytes(rest[1:3], "big")
        yield rest[0], rest[3:end]
        rest = rest[end:]


def pending_repairs(payload: bytes) -> tuple[int, list[PendingRepair]]:
    """The size of the group, and the repairs that are on their way to it."""
    fields = [(entry[:8], entry[8:10], entry[10:12], entry[12:14]) for entry in _cut(payload[6:], 14)]
    return int.from_bytes(payload[2:6], "big"), [
        PendingRepair(*(int.from_bytes(field, "big") for field in entry)) for entry in fields
    ]


def manifest_sentence(body: bytes) -> str:
    """A manifest in words."""
    previous, (key, name, origin, created, stored, size, digest, priority, *_) = cbor2.loads(body)
    feed, epoch, sequence = key
    return (
        f"product {sequence} after {previous}: id {name}, feed {feed}, log epoch {epoch}, origin {origin}, "
        f"created {created}, stored {stored}, {size} bytes, digest {digest.hex()}, class {CLASSES[priority]}"
    )


def _cut(data: bytes, size: int) -> Iterator[bytes]:
    whole = len(data) - len(data) % size
    return (data[at : at + size] for at in range(0, whole, size))
