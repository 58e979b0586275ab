"""The golden datagrams of VCMTP, read by the document."""

import json
from pathlib import Path
from typing import Any

import cbor2
import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from kit import vcmtp_reader as reader
from kit.vcmtp_reader import BLOCK, HEAD, MANIFEST, NOTICE_BITS, PROOF, SYMBOL_BIT, Leg, Proof

GOLDEN = Path(__file__).resolve().parents[2] / "golden"


def golden(name: str) -> Any:
    return json.loads((GOLDEN / name).read_text())


def leg_of(document: Any) -> Leg:
    return Leg(document["leg"], document["leg_epoch"], document["key_id"], bytes.fromhex(document["key"]))


def sentences(payload: bytes, heard: int) -> list[str]:
    """A receiver's sentences about a packet, after it has heard of products up to `heard`."""
    said = []
    for kind, body in reader.frames(payload):
        if kind == MANIFEST:
            said.append(reader.manifest_sentence(body))
            heard = max(heard, cbor2.loads(body)[1][0][2])
        elif kind == BLOCK:
            sequence, offset = int.from_bytes(body[:8], "big"), int.from_bytes(body[8:16], "big")
            if len(body) > 16:
                said.append(f"block of {sequence} at {offset}: {body[16:].hex()}")
        elif kind == HEAD:
            said.append(f"head {int.from_bytes(body, 'big')} behind {max(heard, int.from_bytes(payload[:8], 'big'))}")
    return said


def test_packets_say_what_the_receiver_read() -> None:
    document = golden("vcmtp-packets.json")
    leg = leg_of(document)
    assert len(document["packets"]) > 3
    for number, packet in enumerate(document["packets"], start=1):
        opened, payload = leg.open(bytes.fromhex(packet["datagram"]))
        assert opened == number, "numbers are dense"
        meaning = [sentence for sentence in packet["meaning"] if not sentence.startswith("joined")]
        assert sentences(payload, 0) == meaning


def test_a_bit_that_changed_does_not_open() -> None:
    document = golden("vcmtp-packets.json")
    datagram = bytearray.fromhex(document["packets"][1]["datagram"])
    datagram[40] ^= 1
    with pytest.raises(InvalidTag):
        leg_of(document).open(bytes(datagram))


@pytest.fixture(params=range(3), ids=["signed", "MACs", "large group"])
def proven(request: pytest.FixtureRequest) -> tuple[Leg, Any, dict[int, bytes], list[Proof]]:
    """A leg, the known facts about it, its payloads by number, and its proofs."""
    document = golden("vcmtp-proofs.json")
    leg, said = leg_of(document), document["legs"][request.param]
    payloads = dict(leg.open(bytes.fromhex(entry["datagram"])) for entry in said["datagrams"])
    packets = (payload for number, payload in payloads.items() if number < SYMBOL_BIT)
    bodies = {body: None for payload in packets for kind, body in reader.frames(payload) if kind == PROOF}
    return leg, said, payloads, [Proof.read(body) for body in bodies]


Proven = tuple[Leg, Any, dict[int, bytes], list[Proof]]


def test_every_proof_is_the_senders_and_no_other_is(proven: Proven) -> None:
    leg, said, _, proofs = proven
    key = bytes.fromhex(said["sender_key"])
    assert len(proofs) > 3
    for proof in proofs:
        assert proof.macs == len(said["secrets"])
        forged = Proof(bytes([*proof.body[:-1], proof.body[-1] ^ 1]), *list(vars(proof).values())[1:])
        if not said["secrets"]:
            assert proof.is_signed(leg, key)
            assert not forged.is_signed(leg, key)
        for secret in said["secrets"]:
            assert proof.has_mac(leg, secret["slot"], bytes.fromhex(secret["secret"]))
            assert not proof.has_mac(leg, secret["slot"], bytes(32))
            assert not forged.has_mac(leg, secret["slot"], bytes.fromhex(secret["secret"]))


def test_batches_follow_each_other_and_cover_all_that_speaks(proven: Proven) -> None:
    _, _, payloads, proofs = proven
    controls = {packet: value for proof in proofs for packet, value in proof.controls.items()}
    symbols = {number: value for proof in proofs for number, value in proof.symbols.items()}
    ends = [proof.first + proof.count for proof in proofs]
    assert [proof.first for proof in proofs] == [1, *ends[:-1]]
    for number, payload in payloads.items():
        if number & NOTICE_BITS == NOTICE_BITS:
            continue
        if number & SYMBOL_BIT:
            assert symbols.pop(number) == reader.content_hash(payload)
        elif {MANIFEST, HEAD} & {kind for kind, _ in reader.frames(payload)}:
            assert controls.pop(number) == reader.content_hash(payload)
    assert (controls, symbols) == ({}, {}), "nothing is proven that was not sent"


def test_symbols_name_their_block(proven: Proven) -> None:
    _, said, payloads, _ = proven
    symbols = sorted(number for number in payloads if number & NOTICE_BITS == SYMBOL_BIT)
    assert [(number & 0x7FFF, payloads[number][2:4]) for number in symbols] == [(0, b"\0\2"), (1, b"\0\2")]
    first, packets = symbols[0] >> 15 & (1 << 48) - 1, int.from_bytes(payloads[symbols[0]][:2], "big")
    assert first <= 12, f"the block holds what was asked for, {said['name']}"
    assert first + packets > 13


def test_a_large_group_is_told_what_comes_and_a_small_one_is_not(proven: Proven) -> None:
    _, said, payloads, _ = proven
    notices = [
        reader.pending_repairs(payload) for number, payload in payloads.items() if number & NOTICE_BITS == NOTICE_BITS
    ]
    if said["members"] <= 32:
        assert not notices
        return
    assert {members for members, _ in notices} == {500}
    told = [pending for _, repairs in notices for pending in repairs]
    assert any(pending.symbols == 2 and pending.first <= 12 for pending in told)
    assert all(0 < pending.within_ms <= 600 for pending in told)


def test_the_repair_channels_datagrams_open() -> None:
    document = golden("vcmtp-repair-channel.json")
    key = AESGCM(bytes.fromhex(document["key"]))

    def opened(name: str) -> bytes:
        datagram = bytes.fromhex(document[name])
        assert int.from_bytes(datagram[1:5], "big") == document["channel"]
        nonce = datagram[:1] + bytes(3) + datagram[5:11].rjust(8, b"\0")
        return key.decrypt(nonce, datagram[11:], datagram[:11])

    probe = opened("probe at 0 us")
    assert probe[0] == 1
    assert int.from_bytes(probe[1:9], "big") == 0
    assert cbor2.loads(probe[9:])[0] == []
    repair = opened("repair of packet 41, 'a packet in clear'")
    assert (repair[0], int.from_bytes(repair[1:9], "big"), repair[9:]) == (3, 41, b"a packet in clear")
