"""Sketches as few bytes."""

import random
import zlib

import pytest

from downburst.sketch import LatencySketch
from downburst.sketch_codec import pack, unpack


def _sketch(*values_us: int, bound_ms: float | None = 0.5) -> LatencySketch:
    sketch = LatencySketch()
    for value in values_us:
        sketch.add(value / 1000, bound_ms=bound_ms)
    return sketch


def _same(one: LatencySketch, other: LatencySketch) -> bool:
    """Equal but for the rounding of a float sum, which is not worth a digit."""
    return one.sum_ms == pytest.approx(other.sum_ms, abs=1e-6) and all(
        getattr(one, name) == getattr(other, name)
        for name in ("count", "min_ms", "max_ms", "negative", "bound_ms", "buckets")
    )


def test_what_is_packed_comes_back() -> None:
    random_source = random.Random(20260131)
    for _ in range(300):
        sketches = {
            minute: _sketch(
                *(
                    int(random_source.gauss(0, 10 ** random_source.randint(0, 9)))
                    for _ in range(random_source.randint(1, 40))
                ),
                bound_ms=random_source.choice([None, 0.0, 0.001, 12.345]),
            )
            for minute in random_source.sample(range(60), random_source.randint(0, 60))
        }
        back = unpack(pack(sketches))
        assert back.keys() == sketches.keys()
        assert all(_same(back[minute], sketch) for minute, sketch in sketches.items())


def test_the_sums_of_unpacked_sketches_are_those_of_the_values() -> None:
    minutes = {minute: _sketch(*range(minute * 1000, minute * 1000 + 50)) for minute in range(60)}
    merged, all_values = LatencySketch(), LatencySketch()
    for minute, sketch in unpack(pack(minutes)).items():
        merged.merge(sketch)
        all_values.merge(minutes[minute])
    assert _same(merged, all_values)


@pytest.mark.parametrize(
    "damage", [b"", b"no zlib", zlib.compress(b""), zlib.compress(b"\x07\x00"), zlib.compress(b"\x01\x02\x05")]
)
def test_damage_is_said(damage: bytes) -> None:
    with pytest.raises(ValueError, match="packed sketch"):
        unpack(damage)


def test_a_cut_or_changed_byte_is_never_taken_for_figures() -> None:
    packed = pack({minute: _sketch(1000 * minute + 5, 77) for minute in range(10)})
    for length in range(len(packed)):
        with pytest.raises(ValueError, match="packed sketch"):
            unpack(packed[:length])


def test_an_hour_of_a_busy_feed_takes_about_a_kilobyte() -> None:
    """The arithmetic of docs/adr rests on this: at most 25 bytes a minute with 60 products in it."""
    source = random.Random(1)
    hour = {
        minute: _sketch(*(int(source.lognormvariate(11, 0.4)) for _ in range(60)), bound_ms=0.4)
        for minute in range(60)
    }
    size = len(pack(hour))
    print(f"{size} bytes for 60 minutes of 60 products")
    assert size < 60 * 50
