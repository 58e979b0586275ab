"""The feeds of each mode, and their distribution to sites."""

import re
from collections import Counter
from pathlib import Path

import pytest

from downburst.foundation.errors import BadInput
from downburst_app.demo.scene import SHORT_PLAY_TIME_SCALE, Scene, data_scene, generated_scene, trace_scene
from downburst_app.play.playing import whole


def files(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    contents = {
        "README.md": b"readme",
        "grib2/big.grib2": b"g" * 90_000,
        "goes-glm/one.nc": b"n" * 500,
        "wis2/tiny.json": b"{}",
        "text/nws/empty": b"",
        "text/nws/a": b"same",
        "text/nws/b": b"same",
        "text/gts/c": b"ccc",
    }
    for name, content in contents.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_bytes(content)
    return data


def subscribers(scene: Scene, feed: str) -> list[str]:
    return [site.name for site in scene.sites if any(wish.feed == feed for wish in site.subscriptions)]


def test_every_file_is_played_once_under_its_path(tmp_path: Path) -> None:
    scene = data_scene(files(tmp_path), sites=5, seconds=40, seed=1)
    planned = list(scene.products())
    assert {(product.feed, product.product_id) for product in planned} == {
        ("OTHER", "README.md"),
        ("GRIB2", "grib2/big.grib2"),
        ("GOES-GLM", "goes-glm/one.nc"),
        ("WIS2", "wis2/tiny.json"),
        ("TEXT", "text/nws/empty"),
        ("TEXT", "text/nws/a"),
        ("TEXT", "text/nws/b"),
        ("TEXT", "text/gts/c"),
    }
    assert len(planned) == 8
    for product in planned:
        assert whole(product.body) == (tmp_path / "data" / product.product_id).read_bytes()
    assert [product.at_s for product in planned] == sorted(product.at_s for product in planned)
    assert all(0 <= product.at_s < 40 for product in planned)
    assert scene.total_bytes == 90_000 + 500 + 6 + 2 + 11
    assert {feed.name for feed in scene.feeds} == {product.feed for product in planned}


def test_a_feeds_files_are_spread_over_the_play(tmp_path: Path) -> None:
    data = tmp_path / "d"
    (data / "radar").mkdir(parents=True)
    for number in range(100):
        (data / "radar" / f"{number:03d}").write_bytes(b"x")
    times = [product.at_s for product in data_scene(data, sites=2, seconds=50, seed=3).products()]
    assert Counter(int(at_s // 10) for at_s in times) == dict.fromkeys(range(5), 20)


def test_the_quietest_feed_has_one_subscriber_and_the_last_site_takes_a_part(tmp_path: Path) -> None:
    scene = data_scene(files(tmp_path), sites=5, seconds=40, seed=1)
    assert subscribers(scene, "WIS2") == ["site-1"]
    assert subscribers(scene, "GRIB2") == [f"site-{number}" for number in range(1, 6)]
    parts = [wish for wish in scene.sites[-1].subscriptions if wish.pattern != ".*"]
    assert [(wish.feed, wish.pattern) for wish in parts] == [("TEXT", "^text/nws/")]
    assert all(wish.pattern == ".*" for site in scene.sites[:-1] for wish in site.subscriptions)


def test_a_single_site_takes_everything(tmp_path: Path) -> None:
    scene = data_scene(files(tmp_path), sites=1, seconds=40, seed=1)
    assert {wish.feed for wish in scene.sites[0].subscriptions} == {feed.name for feed in scene.feeds}
    assert all(wish.pattern == ".*" for wish in scene.sites[0].subscriptions)


def test_directories_without_files_and_names_without_an_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not a directory"):
        data_scene(tmp_path / "nothing", sites=1, seconds=40, seed=1)
    with pytest.raises(BadInput, match="no file below"):
        data_scene(tmp_path, sites=1, seconds=40, seed=1)
    (tmp_path / "line\nbreak").write_bytes(b"")
    with pytest.raises(BadInput, match=r"can't be delivered.*U\+000A"):
        data_scene(tmp_path, sites=1, seconds=40, seed=1)


def test_a_trace_goes_whole_to_all_and_the_warnings_beside_it_to_one(tmp_path: Path) -> None:
    trace = tmp_path / "ngrid-20150615T00-1h.txt"
    trace.write_text("".join(f"{100 + n} 201506150000{n:02d}.000\n" for n in range(60)))
    scene = trace_scene(trace, sites=8, minutes=0.5, speed=10, seed=1, play=77)
    planned = list(scene.products())
    traced = [product for product in planned if product.feed == "NGRID"]
    assert [product.body.size_bytes for product in traced] == list(range(100, 130))
    assert traced[-1].at_s == pytest.approx(2.9)
    assert all(wish.pattern == ".*" for site in scene.sites for wish in site.subscriptions if wish.feed == "NGRID")
    assert len(subscribers(scene, "NGRID")) == 8
    assert subscribers(scene, "WARNINGS") == ["site-1"]
    assert scene.time_scale == 10
    assert scene.total_bytes == sum(product.body.size_bytes for product in planned)


def test_an_empty_trace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("")
    with pytest.raises(BadInput, match="no arrival"):
        trace_scene(tmp_path / "t.txt", sites=1, minutes=None, speed=1, seed=1, play=1)


def test_generated_feeds_end_when_told_and_patterns_match_some_but_not_all() -> None:
    scene = generated_scene(sites=5, seconds=30, speed=1, seed=1, play=1)
    planned = list(scene.products())
    assert max(product.at_s for product in planned) < 30
    assert scene.time_scale == SHORT_PLAY_TIME_SCALE
    assert subscribers(scene, "WARNINGS") == ["site-1"]
    for site, feed in (("site-1", "WARNINGS"), ("site-5", "NGRID")):
        wish = next(
            wish for found in scene.sites if found.name == site for wish in found.subscriptions if wish.feed == feed
        )
        ids = [product.product_id for product in planned if product.feed == feed]
        taken = [
            product_id
            for product_id in ids
            if re.search(wish.pattern, product_id)
            and not (wish.not_pattern and re.search(wish.not_pattern, product_id))
        ]
        assert 0.3 * len(ids) < len(taken) < len(ids)


def test_generated_feeds_go_on_without_end_unless_told() -> None:
    scene = generated_scene(sites=2, seconds=None, speed=100, seed=1, play=1)
    assert scene.total_bytes is None
    assert next(product for product in scene.products() if product.at_s > 5).at_s > 5
