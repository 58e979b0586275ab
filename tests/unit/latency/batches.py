"""A batch document as the node writes it."""

from typing import Any


def document(batch: str = "b1", minute: int = 29_453_760) -> dict[str, Any]:
    """Four latencies of one site: two of 2 ms, one of 0.5 ms, one of -1.4 ms."""
    return {
        "batch": batch,
        "sketches": [
            {
                "feed": "NGRID",
                "site": "unl.edu",
                "transport": "multicast",
                "minute": minute,
                "kind": "distribution",
                "count": 4,
                "sum_ms": 3.1,
                "min_ms": -1.4,
                "max_ms": 2.0,
                "negative": 1,
                "bound_ms": 0.6,
                "buckets": {"18": 2, "-17": 1, "n9": 1},
            }
        ],
        "exceptions": [
            {
                "feed": "NGRID",
                "epoch": "7",
                "sequence": 5,
                "site": "unl.edu",
                "outcome": "expired",
                "at_us": 1_000_000,
            }
        ],
        "settled": [
            {
                "feed": "NGRID",
                "epoch": "7",
                "site": "unl.edu",
                "settled_to": 9,
                "stored": 4,
                "stored_bytes": 4_000,
                "duplicates": 0,
                "rejected": 0,
                "expired": 1,
                "late_at_hub": 3,
                "late_at_site": 2,
            }
        ],
        "seconds": [
            {
                "feed": "NGRID",
                "site": "unl.edu",
                "second": minute * 60,
                "stored": 3,
                "late_at_hub": 1,
                "late_at_site": 0,
                "lost": 0,
                "reordered": 1,
                "jitter_us": 120,
                "delay": {
                    "count": 3,
                    "sum_ms": 4.5,
                    "min_ms": 0.5,
                    "max_ms": 2.0,
                    "negative": 0,
                    "bound_ms": 0.6,
                    "buckets": {"18": 2, "-17": 1},
                },
            }
        ],
    }
