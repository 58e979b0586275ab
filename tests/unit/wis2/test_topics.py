"""Topics of WIS2, and filters for them."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downburst.foundation.errors import BadInput
from downburst.wis2.topics import Channel, Policy, advice_on, check_filter, read_topic

CORE = "origin/a/wis2/de-dwd/data/core/weather/surface-based-observations/synop"


def test_the_levels_of_a_topic_are_read() -> None:
    topic = read_topic(CORE)
    assert (topic.channel, topic.centre, topic.kind, topic.policy) == (Channel.ORIGIN, "de-dwd", "data", Policy.CORE)
    assert topic.on(Channel.CACHE) == f"cache{CORE[6:]}"
    recommended = read_topic(CORE.replace("core", "recommended"))
    assert recommended.policy is Policy.RECOMMENDED
    assert read_topic("cache/a/wis2/de-dwd/metadata").policy is None
    assert read_topic("monitor/a/wis2/de-dwd/ca-eccc-msc-global-discovery-catalogue").centre == "de-dwd"
    assert read_topic("origin/a/wis2/de-dwd-gts-to-wis2/data/core/S/M/D/L/01/EDZW").policy is Policy.CORE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "origin",
        "origin/a/wis2/",
        "origin/b/wis2/de-dwd/metadata",
        "source/a/wis2/de-dwd/metadata",
        "origin/a/wis2/de-dwd/metadata/x",
        "origin/a/wis2/de-dwd/data/open/weather",
        "origin/a/wis2/de-dwd/data/core",
        "origin/a/wis2/De-dwd/metadata",
        "origin/a/wis2/de-dwd/data/core/weather/#",
        "origin/a/wis2/de-dwd/data/core/wea ther",
        f"{CORE}/{'x' * 500}",
    ],
)
def test_other_topics_are_refused(text: str) -> None:
    with pytest.raises(BadInput):
        read_topic(text)


@pytest.mark.parametrize(
    "text", [CORE, "cache/a/wis2/#", "cache/a/wis2/+/data/core/weather/#", "origin/a/wis2/+/metadata"]
)
def test_filters_may_have_wildcards(text: str) -> None:
    assert check_filter(text) == text


@pytest.mark.parametrize(
    "text", ["", "#", "+/a/wis2/#", "cache/#/x", "cache/a+", "cache/a/wis2/x#", "cache/ä", "x/a/wis2/#"]
)
def test_other_filters_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadInput, match="cache/a/wis2"):
        check_filter(text)


def test_core_comes_from_caches_and_recommended_from_origins() -> None:
    assert "cache/" in advice_on("origin/a/wis2/+/data/core/#")
    assert "cache/" in advice_on("origin/a/wis2/#")
    assert "origin/" in advice_on("cache/a/wis2/+/data/recommended/#")
    for wise in ("cache/a/wis2/+/data/core/#", "origin/a/wis2/+/data/recommended/#", "cache/a/wis2/+/metadata"):
        assert advice_on(wise) == ""


@given(st.text(alphabet="abz019-_/+#A ", max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (read_topic, check_filter):
        with contextlib.suppress(BadInput):
            read(text)
