"""Reports of nodes on sites' own actions, in this release's format and in earlier ones."""

from typing import Any

import pytest

from downburst.domain.events import ActionFailed
from downburst_worker.messages.lines import traffic_seen

FAILED = {"rule": "pqact.conf:5", "exit": None, "last_error": "no room", "product": "SAUS 1", "sequence": 7}


def progress(**more: Any) -> dict[str, Any]:
    return {"feed": "IDS", "settled_to": 9, "pending": 0, "transport": "unicast", "leg": 1, **more}


def failure(**more: Any) -> ActionFailed | None:
    session = {"site": "unl.edu", "data_connections": 0, "data_connections_planned": 0}
    session |= {"data_connections_reason": "", "feeds": [progress(**more)]}
    line = {"from_us": 0, "to_us": 1, "feeds": [], "legs": [], "control_bytes": 0, "gone": [], "sessions": [session]}
    return traffic_seen(line, {}, []).sessions[0].feeds[0].action_failed


@pytest.mark.parametrize(
    ("said", "count", "others"),
    [({}, 1, ()), ({"epoch": "12", "count": 3, "others": [4, 5]}, 3, (4, 5))],
)
def test_the_newest_failure_is_told_with_the_numbers_of_others(
    said: dict[str, Any], count: int, others: tuple[int, ...]
) -> None:
    found = failure(action_failed={**FAILED, **said})
    assert found is not None
    assert (found.rule, found.exit, found.sequence) == ("pqact.conf:5", None, 7)
    assert (found.epoch, found.count, found.others) == (said.get("epoch"), count, others)


def test_nothing_failed_where_nothing_is_said() -> None:
    assert failure() is None
