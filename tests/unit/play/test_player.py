"""Playing products over HTTP: on time, at bounded concurrency, with retries while the hub is away."""

import asyncio
import hashlib
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import h11
import numpy as np
import pytest

from downburst.foundation.errors import BadInput, Failure
from downburst.recordings.traces import Arrival
from downburst_app.play import player as player_module
from downburst_app.play.generator import built_in_feeds
from downburst_app.play.player import Player, Sent
from downburst_app.play.playing import (
    FileBody,
    GeneratedBody,
    Planned,
    at_speed,
    before,
    from_generator,
    from_trace,
    sha256_of,
    together,
    whole,
    with_files,
)
from downburst_app.play.uploads import Streams


class Hub:
    """Takes products like the hub's route, over streams in memory; `first` holds answers to give before that.

    An answer is a status with a body, or None for a broken connection.
    """

    def __init__(self, *first: tuple[int, str] | None) -> None:
        self.first = list(first)
        self.products: dict[tuple[str, str], bytes] = {}
        self.lengths: list[str] = []
        self.connections = self.running = self.most_running = 0
        self.keeps_open = True
        self.refuses = False

    async def connect(self, host: str, port: int) -> Streams:
        assert (host, port) == ("hub", 80)
        if self.refuses:
            raise ConnectionRefusedError("refused")
        self.connections += 1
        reader = asyncio.StreamReader()
        return reader, cast("asyncio.StreamWriter", HubSide(self, reader))

    def answer(self, request: h11.Request, data: bytes) -> tuple[int, str] | None:
        if self.first:
            return self.first.pop(0)
        _, _, _, feed, _, product_id = request.target.decode().split("/")
        key = (unquote(feed), unquote(product_id))
        self.lengths.append(dict(request.headers)[b"content-length"].decode())
        duplicate = self.products.get(key) == data
        self.products[key] = data
        return (200 if duplicate else 201), "{}"


class HubSide:
    """The hub's end of one connection, to which a client writes."""

    def __init__(self, hub: Hub, reader: asyncio.StreamReader) -> None:
        self.hub = hub
        self.reader = reader
        self.state = h11.Connection(h11.SERVER)
        self.request: h11.Request | None = None
        self.data = bytearray()

    def write(self, data: bytes) -> None:
        self.state.receive_data(data)
        while (event := self.state.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Request):
                self.request, self.data = event, bytearray()
                self.hub.running += 1
                self.hub.most_running = max(self.hub.most_running, self.hub.running)
            elif isinstance(event, h11.Data):
                self.data += event.data
            elif isinstance(event, h11.EndOfMessage):
                asyncio.get_running_loop().call_later(0.0005, self.answer)
            else:
                break

    def answer(self) -> None:
        self.hub.running -= 1
        assert self.request is not None
        answer = self.hub.answer(self.request, bytes(self.data))
        if answer is None:
            self.reader.feed_eof()
            return
        status, text = answer
        response = h11.Response(status_code=status, headers=[("Content-Length", str(len(text.encode())))])
        for event in (response, h11.Data(data=text.encode()), h11.EndOfMessage()):
            self.reader.feed_data(self.state.send(event) or b"")
        self.state.start_next_cycle()
        if not self.hub.keeps_open:
            self.reader.feed_eof()

    async def drain(self) -> None:
        await asyncio.sleep(0)

    def close(self) -> None:
        pass


def player_of(hub: Hub, **options: Any) -> Player:
    return Player("http://hub", connect=hub.connect, **options)


def planned(count: int, *, size_bytes: int = 100, gap_s: float = 0.0) -> list[Planned]:
    return [Planned(n * gap_s, "IDS|DDPLUS", f"a/b %{n}", GeneratedBody((1, n), size_bytes)) for n in range(count)]


async def test_each_product_arrives_with_the_bytes_recorded_before() -> None:
    hub, recorded = Hub(), list[Sent]()
    player = player_of(hub, before_send=recorded.append)
    products = [
        *planned(20),
        Planned(0, "X", "empty", GeneratedBody((2, 1), 0)),
        Planned(0, "X", "big", GeneratedBody((3,), 300_000)),
    ]
    summary = await player.play(products)
    assert summary.products == 22
    assert summary.bytes == 20 * 100 + 300_000
    assert summary.per_feed == {"IDS|DDPLUS": 20, "X": 2}
    assert {(sent.feed, sent.product_id): sent.sha256 for sent in recorded} == {
        key: hashlib.sha256(data).hexdigest() for key, data in hub.products.items()
    }
    assert hub.products["X", "empty"] == b""
    assert sorted(hub.lengths, key=int)[0] == "0"


async def test_concurrency_is_bounded() -> None:
    hub = Hub()
    await player_of(hub, concurrency=3).play(planned(60))
    assert hub.most_running == 3


async def test_products_are_sent_when_due_and_lateness_is_told() -> None:
    hub = Hub()
    summary = await player_of(hub).play(planned(5, gap_s=0.05))
    assert summary.wall_s >= 0.2
    assert 0 <= summary.slip_p50_s <= summary.slip_p99_s <= summary.slip_max_s
    late = await player_of(hub).play([Planned(-30.0, "F", "late", GeneratedBody((9,), 1))])
    assert late.slip_max_s >= 30


async def test_a_hub_that_is_away_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player_module, "FIRST_RETRY_S", 0.001)
    hub = Hub(None, (503, '{"detail": "the node restarts"}'))
    summary = await player_of(hub).play(planned(1))
    assert (summary.products, summary.retries) == (1, 2)
    assert len(hub.products) == 1


async def test_patience_ends_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player_module, "FIRST_RETRY_S", 0.001)
    hub = Hub()
    hub.refuses = True
    with pytest.raises(Failure, match=r"does not answer \(refused\); gave up after 0\.01 s"):
        await player_of(hub, patience_s=0.01).play(planned(2))


async def test_a_refusal_ends_the_play_with_the_hubs_sentence() -> None:
    hub = Hub((404, '{"detail": "there is no feed \'NGRUD\'; did you mean NGRID?"}'))
    with pytest.raises(BadInput, match="did you mean NGRID"):
        await player_of(hub, concurrency=1).play(planned(3))
    assert hub.products == {}


async def test_an_answer_of_something_else_is_named() -> None:
    with pytest.raises(BadInput, match="check that it is a Downburst hub"):
        await player_of(Hub((404, "nginx"))).play(planned(1))


async def test_connections_are_used_again_unless_the_hub_closed_them() -> None:
    hub = Hub()
    await player_of(hub, concurrency=2).play(planned(40))
    assert hub.connections == 2
    closing = Hub()
    closing.keeps_open = False
    summary = await player_of(closing, concurrency=1).play(planned(5))
    assert (closing.connections, summary.retries) == (5, 0)


@pytest.mark.parametrize("address", ["hub:7371", "ftp://hub", "http://"])
def test_addresses_of_no_hub_are_refused(address: str) -> None:
    with pytest.raises(BadInput, match="is not the address of a hub"):
        Player(address)


async def test_large_files_are_read_as_they_are_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player_module, "LARGEST_WHOLE_BYTES", 1000)
    data = np.random.default_rng(1).bytes(700_000)
    (tmp_path / "big").write_bytes(data)
    hub, recorded = Hub(), list[Sent]()
    body = FileBody(tmp_path / "big", len(data))
    await player_of(hub, before_send=recorded.append).play([Planned(0, "F", "big", body)])
    assert hub.products["F", "big"] == data
    assert hub.lengths == [str(len(data))]
    assert recorded[0].sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("size_bytes", [0, 1, 11, 1_000, 262_144, 1_000_001])
def test_generated_bytes_have_their_size_repeat_and_do_not_compress(size_bytes: int) -> None:
    body = GeneratedBody((4, 5), size_bytes)
    data = whole(body)
    assert len(data) == size_bytes
    assert data == whole(body)
    assert sha256_of(body) == hashlib.sha256(data).hexdigest()
    assert size_bytes < 100 or data != whole(GeneratedBody((4, 6), size_bytes))
    assert size_bytes < 1000 or len(zlib.compress(data)) > 0.95 * size_bytes


def test_a_trace_becomes_products_with_its_sizes_at_the_played_speed() -> None:
    arrivals = [Arrival(10, 5_000_000), Arrival(20, 6_000_000), Arrival(30, 65_000_000)]
    products = list(at_speed(before(from_trace(arrivals, feed="NGRID", label="t", play=255), seconds=60), speed=10))
    assert [(product.at_s, product.body.size_bytes) for product in products] == [(0.0, 10), (0.1, 20)]
    assert [product.product_id for product in products] == ["t/ff/0000000", "t/ff/0000001"]


def test_two_plays_of_a_trace_share_neither_ids_nor_bytes() -> None:
    arrivals = [Arrival(100, 0)]
    one, other = (next(from_trace(arrivals, feed="F", label="t", play=play)) for play in (1, 2))
    assert one.product_id != other.product_id
    assert whole(one.body) != whole(other.body)


def test_files_lend_their_bytes_in_turn(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(name * 3)
    products = with_files(planned(3), [tmp_path / "a", tmp_path / "b"])
    assert [whole(product.body) for product in products] == [b"aaa", b"bbb", b"aaa"]
    with pytest.raises(BadInput, match="no file"):
        list(with_files(planned(1), []))


def test_streams_are_merged_in_time_order() -> None:
    feeds = built_in_feeds()
    streams = [from_generator(feed.products(seed=1), feed=feed.name, play=1) for feed in feeds]
    products = list(before(together(*streams), seconds=30))
    assert {product.feed for product in products} == {feed.name for feed in feeds}
    assert all(earlier.at_s <= later.at_s for earlier, later in pairwise(products))
