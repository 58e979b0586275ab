"""The rows of bench-spacing: medians, and the goals of each receiver."""

import json

from bench.spacing import Run, rows


def run_of(manner: str, received: int, cpu_share: float) -> Run:
    said = {"manner": manner, "sent": 100, "received": received, "cpu_share": cpu_share}
    return Run.of("spacing " + json.dumps(said | {"sigma_us": 20.0, "source_sigma_us": 10.0, "reads": 50}))


def test_medians_are_judged() -> None:
    shares = {"blocking": 0.2, "adaptive": 0.9, "polling": 1.0}
    runs = [run_of(manner, 100 - turn // 2, share) for turn in range(3) for manner, share in shares.items()]
    found = {row.id: row for row in rows(runs)}
    assert [found[name].ours for name in ("1a", "2a", "3a")] == [0, 0, 0]
    assert (found["1c"].ratio, found["1c"].met, found["2c"].goal) == (0.2, True, None)
    assert [found[name].met for name in ("1a", "2a", "3a", "1b", "2b")] == [None, True, True, True, True]
    assert found["1b"].runs == 3
