"""The watched directory as a separate process: files reach the hub's route, and its refusals are distinguished."""

import asyncio
import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import h11
import pytest

from downburst.domain.products import Product
from downburst.foundation.errors import BadInput, BadSettings, Failure
from downburst.supervision import start
from downburst_app.play.uploads import Uploads
from downburst_app.wiring.hub import directory_source
from downburst_app.wiring.ingest import ProductUploads, serve_ingest
from downburst_app.wiring.process import cancelled
from factories import settings
from unit.play.test_player import Hub


class Route(Hub):
    """The hub's route, which verifies the digest."""

    def answer(self, request: h11.Request, data: bytes) -> tuple[int, str] | None:
        if self.first:
            return self.first.pop(0)
        digest = dict(request.headers)[b"content-digest"].decode()
        assert digest == f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"
        feed, _, product_id = request.target.decode().removeprefix("/v1/feeds/").partition("/products/")
        key = unquote(feed), unquote(product_id)
        told = {"size": len(data), "digest": "00"}
        known = self.products.get(key) == data
        self.products[key] = data
        return (200, json.dumps(told | {"duplicate_of": 1})) if known else (201, json.dumps(told | {"sequence": 1}))


def uploads(hub: Hub) -> ProductUploads:
    return ProductUploads("http://hub", Uploads("http://hub", connect=hub.connect))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "product"
    made.write_bytes(b"grid" * 100_000)
    return made


async def test_a_file_is_acknowledged_and_the_same_again_is_a_duplicate(file: Path) -> None:
    hub = Route()
    send = uploads(hub)
    first = await send(file, Product("IDS|DDPLUS", "a/%/b"), remove=False)
    assert (first.sequence, first.duplicate_of, first.size_bytes) == (1, None, 400_000)
    assert (await send(file, Product("IDS|DDPLUS", "a/%/b"), remove=True)).duplicate_of == 1
    assert hub.products == {("IDS|DDPLUS", "a/%/b"): b"grid" * 100_000}
    assert not is_there(file)


@pytest.mark.parametrize(
    ("answer", "error", "sentence"),
    [
        ((404, '{"detail": "there is no feed"}'), BadInput, "there is no feed"),
        ((401, '{"detail": "sign in"}'), Failure, "sign in"),
        ((429, '{"detail": "slower"}'), Failure, "slower"),
        ((507, '{"detail": "the disk is full"}'), Failure, "the disk is full"),
        ((502, "<html>"), Failure, "502 without a reason"),
        ((201, "{}"), Failure, "201 without a reason"),
        (None, Failure, "does not answer"),
    ],
)
async def test_only_what_lies_in_the_file_is_held_against_it(
    file: Path, answer: tuple[int, str] | None, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        await uploads(Route(answer))(file, Product("NGRID", "a"), remove=True)
    assert is_there(file)


async def test_files_of_the_directory_reach_the_hub(tmp_path: Path) -> None:
    watched = tmp_path / "drop"
    (watched / "NGRID").mkdir(parents=True)
    (watched / "NGRID" / "a.grib2").write_bytes(b"grid")
    hub, said = Route(), list[str]()
    watch = settings(tmp_path).watch.model_copy(update={"directory": watched, "after": "move"})
    source = directory_source(watch, uploads(hub), on_fault=said.append)
    assert source is not None
    running = start("test.source", source.run())
    await until(lambda: source.counts.stored == 1)
    await cancelled(running)
    assert hub.products == {("NGRID", "a.grib2"): b"grid"}
    assert (watched / "done" / "NGRID" / "a.grib2").exists()
    assert said == []


def is_there(path: Path) -> bool:
    return path.exists()


async def until(good: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not good():  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(("watch", "sentence"), [({}, "watch.apart = true"), ({"apart": True}, "watch.directory")])
async def test_settings_that_leave_nothing_to_watch_are_refused(
    tmp_path: Path, watch: dict[str, object], sentence: str
) -> None:
    given = settings(tmp_path)
    given = given.model_copy(update={"watch": given.watch.model_copy(update=watch)})
    with pytest.raises(BadSettings, match=sentence):
        await serve_ingest(given, "http://hub")
