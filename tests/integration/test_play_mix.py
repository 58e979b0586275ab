"""`downburst play --mix`: the feeds of a busy hub, played into a real one."""

import json

import pytest

from downburst_app.play.idd_mix import IDD_2024
from integration.conftest import Starter, until

SECONDS = 3
PLAY = ("play", "--mix", "idd-2024", "--size", "0.001", "--minutes", str(SECONDS / 60), "--seed", "5", "--json")


@pytest.mark.all
def test_a_mix_makes_its_feeds_and_plays_new_products_each_time(starter: Starter) -> None:
    hub = starter.hub()
    refused = hub.command(*PLAY)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "no feed SATELLITE, NEXRAD2" in refused.stderr
    assert "--create-feeds" in refused.stderr

    first = hub.command(*PLAY, "--create-feeds")
    assert first.returncode == 0, first.stderr
    made = {feed["feed"]: feed["class"] for feed in hub.ask("GET", "/v1/feeds")}
    assert made == {feed.name: str(feed.feed_class) for feed in IDD_2024}
    again = hub.command(*PLAY)
    assert again.returncode == 0, again.stderr

    summaries = [json.loads(told.stdout) for told in (first, again)]
    products = summaries[0]["products"]
    assert 60 * SECONDS < products < 200 * SECONDS, "some 109 a second"
    assert [told["products"] for told in summaries] == [products] * 2, "the same seed plays the same mix"
    assert [told["duplicates"] for told in summaries] == [0, 0], "with other products"
    assert all(told["wall_s"] > SECONDS - 1 for told in summaries), "each when it is due"

    def at_hub() -> dict[str, int]:
        feeds = hub.ask("GET", "/v1/overview")["feeds"]
        return {feed["feed"]: feed["products"] for feed in feeds if feed["products"]}

    expected = {feed: 2 * count for feed, count in summaries[0]["per_feed"].items()}
    until("the hub has counted everything", lambda: at_hub() == expected)
