"""Uploads: stored products, refused products, and no leftovers."""

from base64 import b64encode
from collections.abc import AsyncIterator
from hashlib import sha256
from urllib.parse import quote

import pytest
from blake3 import blake3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from downburst.foundation.errors import BadName
from downburst.foundation.names import check_product_id
from kit.fake_node import EPOCH, RefusedJob
from unit.api.conftest import Asked

IDS = [
    "SDUS54 KOUN 161540 /pN0RTLX",
    "a/b//c",
    "100 % & more? #1",
    "%2F%25",
    "Wärme ☂",
    "UREL;VREL/10 m HGHT! 000016",
    " . ",
]


@pytest.fixture
async def ngrid(hub: Asked) -> Asked:
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID", "max_product_bytes": 1000})
    return hub


def path_of(product_id: str, feed: str = "NGRID") -> str:
    return f"/v1/feeds/{quote(feed, safe='')}/products/{quote(product_id, safe='')}"


@pytest.mark.parametrize("product_id", IDS)
async def test_any_id_survives_the_address(ngrid: Asked, product_id: str) -> None:
    stored = await ngrid.ask("PUT", path_of(product_id), 201, content=b"bytes")
    assert stored["product_id"] == product_id
    assert ngrid.node.fake.jobs[-1]["product_id"] == product_id


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(product_id=some.text(min_size=1, max_size=90).filter(lambda text: text not in (".", "..")))
async def test_an_id_is_stored_as_it_is_or_refused_by_the_rules(ngrid: Asked, product_id: str) -> None:
    answer = await ngrid.client.put(path_of(product_id), content=product_id.encode())
    reason = refusal_of(product_id)
    if reason is None:
        assert answer.status_code in (200, 201)
        assert answer.json()["product_id"] == product_id
    else:
        assert answer.status_code == 400
        assert answer.json()["detail"] == reason


async def test_the_answer_says_where_it_is(ngrid: Asked) -> None:
    stored = await ngrid.ask("PUT", path_of("a"), 201, content=b"grid", headers={"Downburst-Origin": "o.example"})
    assert stored == {
        "feed": "NGRID",
        "product_id": "a",
        "stored": True,
        "sequence": 1,
        "epoch": EPOCH,
        "size": 4,
        "digest": blake3(b"grid").hexdigest(),
        "stored_at": stored["stored_at"],
        "created_at": stored["created_at"],
    }
    assert ngrid.node.fake.jobs[-1]["origin"] == "o.example"
    again = await ngrid.ask("PUT", path_of("a"), 200, content=b"grid")
    assert (again["stored"], again["duplicate_of"]) == (False, 1)
    assert nothing_is_left(ngrid)


async def test_an_empty_product_is_a_product(ngrid: Asked) -> None:
    assert (await ngrid.ask("PUT", path_of("empty"), 201))["size"] == 0


async def test_equal_bytes_under_two_ids_are_two_products(ngrid: Asked) -> None:
    first = await ngrid.ask("PUT", path_of("a"), 201, content=b"same")
    second = await ngrid.ask("PUT", path_of("b"), 201, content=b"same")
    assert first["sequence"] != second["sequence"]


@pytest.mark.parametrize(
    ("product_id", "part"),
    [
        ("../etc/passwd", "'..'"),
        ("a/../b", "'..'"),
        ("x" * 256, "256 bytes"),
        ("a\nb", "U+000A at byte 1"),
        ("", "empty"),
    ],
)
async def test_a_bad_id_is_refused(ngrid: Asked, product_id: str, part: str) -> None:
    problem = await ngrid.problem("PUT", path_of(product_id), 400, "bad-id", content=b"x")
    assert part in problem["detail"]
    assert not ngrid.node.fake.products


async def test_an_id_that_is_no_text_is_refused(ngrid: Asked) -> None:
    problem = await ngrid.problem("PUT", "/v1/feeds/NGRID/products/%FF", 400, "bad-id", content=b"x")
    assert "UTF-8" in problem["detail"]


async def test_an_unknown_feed_names_the_near_ones(ngrid: Asked) -> None:
    problem = await ngrid.problem("PUT", path_of("a", "NGRIB"), 404, "unknown-feed", content=b"x")
    assert problem["near"] == ["NGRID"]


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Content-Digest", f"sha-256=:{b64encode(sha256(b'grid').digest()).decode()}:"),
        ("Content-Digest", f"md5=:AAAA:, sha-256=:{b64encode(sha256(b'grid').digest()).decode()}:"),
        ("Downburst-BLAKE3", blake3(b"grid").hexdigest().upper()),
    ],
)
async def test_a_digest_is_checked(ngrid: Asked, header: str, value: str) -> None:
    await ngrid.problem("PUT", path_of("a"), 422, "digest-mismatch", content=b"GRID", headers={header: value})
    assert not ngrid.node.fake.products
    assert nothing_is_left(ngrid)
    await ngrid.ask("PUT", path_of("a"), 201, content=b"grid", headers={header: value})


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Content-Digest", "sha-512=:AAAA:"),
        ("Content-Digest", "sha-256=short"),
        ("Downburst-BLAKE3", "00"),
        ("Downburst-Created", "yesterday"),
        ("Downburst-Created", "2026-01-31T06:00:00"),
        ("Downburst-Created", "9" * 40),
        ("Downburst-Created", "1900-01-31T06:00:00Z"),
        ("Downburst-Origin", "two words"),
    ],
)
async def test_a_bad_header_is_refused(ngrid: Asked, header: str, value: str) -> None:
    answer = await ngrid.client.put(path_of("a"), content=b"x", headers={header: value})
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert not ngrid.node.fake.products


@pytest.mark.parametrize("text", ["2026-01-31T06:00:00Z", "2026-01-31T07:00:00+01:00", "1769839200000000"])
async def test_the_creation_reaches_the_node(ngrid: Asked, text: str) -> None:
    await ngrid.ask("PUT", path_of("a"), 201, content=b"x", headers={"Downburst-Created": text})
    assert ngrid.node.fake.jobs[-1]["created_us"] == 1_769_839_200_000_000


async def test_a_large_product_is_refused_before_and_while_it_comes(ngrid: Asked) -> None:
    assert (await ngrid.problem("PUT", path_of("a"), 413, "too-large", content=b"x" * 1001))["limit_bytes"] == 1000
    await ngrid.problem("PUT", path_of("a"), 413, "too-large", content=parts(b"x" * 600, b"x" * 401))
    await ngrid.ask("PUT", path_of("a"), 201, content=b"x" * 1000)
    assert nothing_is_left(ngrid)


async def test_the_hub_has_a_limit_of_its_own(hub: Asked) -> None:
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "BIG"})
    problem = await hub.problem("PUT", path_of("a", "BIG"), 413, "too-large", content=b"x" * 1_000_001)
    assert problem["limit_bytes"] == 1_000_000


async def test_an_upload_in_many_parts_is_whole(hub: Asked) -> None:
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "BIG"})
    whole = bytes(range(256)) * 3500
    stored = await hub.ask(
        "PUT", path_of("a", "BIG"), 201, content=parts(*(whole[at : at + 7000] for at in range(0, len(whole), 7000)))
    )
    assert stored["digest"] == blake3(whole).hexdigest()


async def test_fewer_bytes_than_announced_store_nothing(ngrid: Asked) -> None:
    headers = {"Content-Length": "500"}
    problem = await ngrid.problem("PUT", path_of("a"), 400, "truncated", content=parts(b"x" * 499), headers=headers)
    assert "500 bytes were announced and 499 came" in problem["detail"]
    assert not ngrid.node.fake.products
    assert nothing_is_left(ngrid)


@pytest.mark.parametrize(("code", "status"), [("disk-full", 507), ("io", 500), ("truncated", 400)])
async def test_what_the_node_refuses_is_passed_on(ngrid: Asked, code: str, status: int) -> None:
    ngrid.node.fake.refuse_ingest = RefusedJob(code, "there is no room at /data; free some")
    answer = await ngrid.client.put(path_of("a"), content=b"x")
    assert answer.status_code == status
    assert answer.json()["detail"] == "there is no room at /data; free some"
    assert nothing_is_left(ngrid)


async def test_a_spool_directory_that_is_gone_is_no_silence(ngrid: Asked) -> None:
    ngrid.runtime.settings.spool_dir.rmdir()
    answer = await ngrid.client.put(path_of("a"), content=b"x")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"


async def parts(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def refusal_of(product_id: str) -> str | None:
    try:
        check_product_id(product_id)
    except BadName as refused:
        return refused.sentence
    return None


def nothing_is_left(hub: Asked) -> bool:
    return not list(hub.runtime.settings.spool_dir.iterdir())
