"""The page knows the kinds and severities that the hub knows."""

import json
from pathlib import Path

from downburst.domain.alarms import AlarmKind, Severity

WORDS = Path(__file__).resolve().parents[3] / "services/dashboard/src/alarm-words.json"


def test_the_page_offers_every_kind_and_severity_in_their_order() -> None:
    wanted = {"kinds": [kind.value for kind in AlarmKind], "severities": [one.value for one in Severity]}
    assert json.loads(WORDS.read_text()) == wanted, f"write it anew: {json.dumps(wanted)}"
