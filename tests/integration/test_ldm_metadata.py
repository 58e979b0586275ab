"""A site's actions have a product's number, signature, identifier and origin as an LDM of the hub has them."""

import hashlib
import struct
from dataclasses import replace
from pathlib import Path

from kit.ldm.hub import ask, holds, hub_at, serve
from kit.ldm.wire import NGRID, OK, Asked, Product, Serving, connected
from kit.node import HubNode, SiteNode
from kit.patience import wait_for

METADATA = struct.Struct("=I16sIQiII")
"""Length, signature, size, seconds, microseconds, feed type, number; then the identifier and the origin."""
HOST = "127.0.0.1"
"""Site and LDM call the hub so; it calls the LDM above so."""
RULES = "ANY\t.*\tFILE\t-overwrite -close -metadata\tseen/(seq)\n"
PUT = 3
"""Products that no LDM brought."""


def test_finding_27_a_site_has_what_ldm_says_of_a_product(tmp_path: Path) -> None:
    upstream, brought = Serving(), _brought()
    upstream.put(*brought)
    with hub_at(tmp_path / "hub") as hub:
        site = _site(hub, tmp_path)
        try:
            ask(hub, upstream.address)
            holds(hub, len(brought))
            for number in range(PUT):
                hub.put("NGRID", f"put {number}", b"content %d" % number)
            told = _told(serve(hub), len(brought) + PUT)
            _same(site, told)
        finally:
            site.stop()
    upstream.close()
    by_number = {one.sequence: one for one in told}
    for one in brought:
        seen = by_number[one.sequence]
        assert (seen.ident, seen.signature, seen.origin) == (one.ident, one.signature, f"{one.origin}_v_{HOST}")


def _brought() -> list[Product]:
    """Numbers beyond those of the log, signatures other than the MD5 of the bytes, identifiers of arbitrary bytes."""
    idents = ["SDUS54 KOUN 161540", "a/../b\x07", b"\xff\xfe".decode(errors="surrogateescape"), "large"]
    sizes = [20, 20, 20, 300_000]
    return [
        Product.of(
            ident,
            bytes([number]) * size,
            sequence=900_000 + number,
            signature=hashlib.md5(ident.encode(errors="surrogateescape"), usedforsecurity=False).digest(),
        )
        for number, (ident, size) in enumerate(zip(idents, sizes, strict=True))
    ]


def _site(hub: HubNode, directory: Path) -> SiteNode:
    """A receiver that writes each product with its metadata, named by its number."""
    rules = directory / "pqact.conf"
    rules.write_text(RULES)
    site = SiteNode(directory / "site", hub.address, arguments=("--actions", str(rules)))
    hub.site("one", {"feed": "NGRID", "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
    site.start()
    hub.wait_connected("one")
    return site


def _told(address: str, count: int) -> list[Product]:
    """Products as in the queue of an LDM downstream: it names its upstream as the last hop."""
    with connected(address) as wire:
        asked = Asked(wire)
        assert asked.feed_me((NGRID, ".*"))[0] == OK
        got = asked.take(count)
    return [replace(one, origin=f"{one.origin.partition('_v_')[0]}_v_{HOST}") for one in got]


def _same(site: SiteNode, told: list[Product]) -> None:
    folder = site.directory / "data" / "seen"
    wanted = {str(one.sequence): _metadata(one) for one in told}
    sizes = {name: len(whole) for name, whole in wanted.items()}
    wait_for("whole files", lambda: {path.name: path.stat().st_size for path in folder.glob("*")} == sizes, 30)
    for name, whole in wanted.items():
        assert (folder / name).read_bytes() == whole, name


def _metadata(one: Product) -> bytes:
    """The metadata that LDM's `pqact` writes for a product of its queue."""
    assert one.content is not None
    texts = [one.ident.encode(errors="surrogateescape"), one.origin.encode()]
    length = METADATA.size + sum(4 + len(text) for text in texts)
    stamp = divmod(one.created_us, 1_000_000)
    fixed = METADATA.pack(length, one.signature, len(one.content), *stamp, one.feed, one.sequence)
    return fixed + b"".join(struct.pack("=I", len(text)) + text for text in texts) + one.content
