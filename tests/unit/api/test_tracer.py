"""The API's answer about the connections of a site."""

from downburst.foundation.clock import FakeClock, to_us
from unit.api.conftest import Asked


async def test_verdict_stalls_and_samples_of_a_site_are_told(hub: Asked, clock: FakeClock) -> None:
    await hub.ask("POST", "/v1/sites", 201, json={"site": "a.edu"})
    told = await hub.ask("GET", "/v1/sites/a.edu/tracer?last_s=90&points=7&variable=rtt&variable=bytes_acked")
    job = hub.node.fake.jobs[-1]
    now_us = to_us(clock.now())
    assert (job["from_us"], job["to_us"], job["points"]) == (now_us - 90_000_000, now_us, 7)
    assert job["variables"] == ["rtt", "bytes_acked"]
    assert (told["site"], told["unable"], told["damaged"], told["missed_ticks"]) == ("a.edu", None, 2, 1)
    assert (told["variables"], told["counters"]) == (["rtt", "bytes_acked"], ["bytes_acked"])
    (connection,) = told["connections"]
    assert (connection["role"], connection["peer"]) == ("session", "192.0.2.9:40000")
    assert [row[1:] for row in connection["samples"]] == [[20_000, 5], [None, 8]]
    assert connection["verdict"]["leading"] == "application"
    assert sum(one["share"] for one in connection["verdict"]["shares"]) == 1
    (stall,) = connection["stalls"]
    assert (stall["waiting_bytes"], stall["ended"]) == (9, True)


async def test_an_unknown_site_or_variable_and_an_endless_period_are_refused(hub: Asked) -> None:
    await hub.ask("POST", "/v1/sites", 201, json={"site": "a.edu"})
    await hub.problem("GET", "/v1/sites/b.edu/tracer", 404, "not-found")
    refused = await hub.client.get("/v1/sites/a.edu/tracer?variable=cwnd")
    assert refused.status_code == 400
    assert "there are rtt, bytes_acked" in refused.json()["detail"]
    for query in ("last_s=0", "last_s=1e9", "points=1", "points=1000000", "&".join(["variable=rtt"] * 25)):
        assert (await hub.client.get(f"/v1/sites/a.edu/tracer?{query}")).status_code in {400, 422}, query
