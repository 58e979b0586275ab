"""A whole hub with requests for too many rows from many connections: it keeps as many as its limits allow."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from downburst.ledger.storage import limits
from integration.conftest import RunningHub, Starter

BEYOND = 8
SITE = "/v1/sites/near.example"


@pytest.mark.all
def test_a_whole_hub_takes_as_many_rows_of_a_site_as_its_limits_say(starter: Starter) -> None:
    hub = starter.hub()
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    hub.ask("POST", "/v1/sites", 201, json={"site": "near.example"})
    tokens = limits.PENDING_TOKENS_OF_SITE.most
    assert asked_at_once(hub, tokens, f"{SITE}/tokens") == {201: tokens, 409: BEYOND}
    assert len(hub.ask("GET", SITE)["tokens"]) == tokens

    windows = limits.WINDOWS_OF_SITE.most
    assert asked_at_once(hub, windows, f"{SITE}/silences", minutes=5) == {201: windows, 409: BEYOND}
    assert len(hub.ask("GET", f"{SITE}/silences")) == windows

    backfills = limits.RESENDS_OF_SITE.most
    found = asked_at_once(hub, backfills, f"{SITE}/subscriptions", feed="NGRID", start="2h")
    assert found[201] >= backfills, "one that has ended makes room for another"
    assert set(found) <= {201, 409}
    waiting = [one for one in hub.ask("GET", "/v1/resends?limit=1000") if one["state"] == "waiting"]
    assert len(waiting) <= backfills

    refused = hub.command("sites", "token", "near.example")
    assert refused.returncode == 2
    sentence = f"site 'near.example' has {tokens} unused enrolment tokens, and the limit is {tokens}; "
    assert sentence in refused.stderr.replace("\n", " ")
    ended = hub.command("sites", "end-tokens", "near.example")
    assert ended.stdout == f"{tokens} enrolment tokens of near.example ended\n", ended.stderr
    assert hub.command("sites", "token", "near.example").returncode == 0


def asked_at_once(hub: RunningHub, most: int, path: str, **body: Any) -> Counter[int]:
    """The statuses of some more requests than the limit, each in a thread of its own."""
    times = most + BEYOND
    with ThreadPoolExecutor(max_workers=times) as threads:
        asked = [threads.submit(hub.client.post, path, json=body) for _ in range(times)]
        return Counter(one.result().status_code for one in asked)
