"""Downloads in the node's lines: bounded groups, and ends of which an impossible one costs no other."""

from typing import Any

import pytest

from downburst.domain.bridges import FetchEnd, WantedProduct
from downburst.domain.products import Product
from downburst.foundation.errors import DigestMismatch, NotFetched
from downburst_worker.messages.fetch_lines import fetch_ends, fetch_job

GOOD = {"product": 1, "sequence": 5, "size": 9}


def test_a_job_has_its_feed_and_rights_once_and_each_product() -> None:
    wanted = [
        WantedProduct(f"https://cache.example/{number}", Product("WIS2", str(number)), may_ask_private=True)
        for number in range(2)
    ]
    job = fetch_job(wanted)
    assert (job["feed"], job["limits"]) == ("WIS2", {"private": True})
    assert [one["product_id"] for one in job["products"]] == ["0", "1"]
    assert (job["products"][0]["stated"], job["products"][0]["credentials"]) == (None, None)


def test_ends_are_numbers_of_products_or_reasons() -> None:
    answer = {
        "ends": [
            GOOD,
            {"product": 0, "duplicate_of": 3, "size": None},
            {"product": 2, "code": "not-fetched", "error": "the server answers with status 404"},
            {"product": 3, "code": "digest-mismatch", "error": "other bytes"},
        ]
    }
    stored, duplicate, missing, other = fetch_ends(answer, 4)
    assert (stored, duplicate) == (FetchEnd(1, 5, 9), FetchEnd(0, 3))
    assert isinstance(missing.refusal, NotFetched)
    assert missing.refusal.sentence == "the server answers with status 404"
    assert isinstance(other.refusal, DigestMismatch)


@pytest.mark.parametrize("absurd", [-1, 3, 2**64, 1.5, "1", None, True, [], {}])
@pytest.mark.parametrize("name", ["product", "sequence", "size"])
def test_an_impossible_end_costs_no_other(name: str, absurd: Any) -> None:
    good = {"product": 0, "sequence": 4, "size": 1}
    ends = fetch_ends({"ends": [GOOD | {name: absurd}, "no end", good]}, 3)
    assert FetchEnd(0, 4, 1) in ends
    assert all(0 <= end.place < 3 and end.size_bytes >= 0 for end in ends)
