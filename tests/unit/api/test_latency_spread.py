"""The histogram of latencies, and their history as a file."""

import pytest

from downburst.domain.receipts import Batch
from downburst_api.latency.histogram import bins
from factories import sketch_row
from unit.api.conftest import Asked


async def _filled(hub: Asked) -> int:
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    await hub.ask("POST", "/v1/sites", 201, json={"site": "unl.edu"})
    minute = int(hub.runtime.clock.now().timestamp() // 60)
    rows = (sketch_row([1.5, 1.5, 40.0, -2.0], minute=minute), sketch_row([900.0], minute=minute - 30))
    await hub.runtime.ledger.write(lambda tx: tx.measured.batches.load(Batch("b", rows, (), ())))
    return minute


async def test_the_histogram_holds_every_value_above_zero_between_round_bounds(hub: Asked) -> None:
    await _filled(hub)
    asked = {"feed": "NGRID", "site": "unl.edu", "minutes": 60}
    found = await hub.ask("GET", "/v1/latency/histogram", params=asked)
    assert [one["count"] for one in found["bins"]] == [2, 1, 1]
    for one, value_ms in zip(found["bins"], (1.5, 40.0, 900.0), strict=True):
        assert one["from_ms"] * 0.98 <= value_ms <= one["to_ms"] * 1.02
    assert (found["figures"]["count"], found["figures"]["negative"], found["figures"]["max"]) == (5, 1, 900.0)
    later = await hub.ask("GET", "/v1/latency/histogram", params={**asked, "minutes": 5})
    assert later["figures"]["count"] == 4
    assert bins({"z": 3, "n4": 1}) == []


@pytest.mark.parametrize("by_header", [True, False])
async def test_the_history_is_a_file_for_whoever_asks(hub: Asked, by_header: bool) -> None:
    await _filled(hub)
    asked: dict[str, str] = {"feed": "NGRID"} | ({} if by_header else {"format": "csv"})
    headers = {"accept": "text/csv"} if by_header else {}
    answer = await hub.client.get("/v1/latency/history", params=asked, headers=headers)
    assert answer.status_code == 200
    header, *lines = answer.text.splitlines()
    assert header == "at,p50,p95,p99,max,count,negative,bound,certainty"
    assert [line.split(",")[4:7] for line in lines] == [["900.0", "1", "0"], ["40.0", "4", "1"]]
    assert 'filename="latency-NGRID-all.csv"' in answer.headers["content-disposition"]
