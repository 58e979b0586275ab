"""The Grafana board that is shipped, and its questions as Grafana asks them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parents[2] / "monitoring" / "grafana-downburst.json"


def board() -> dict[str, Any]:
    """All of it."""
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def questions() -> Iterator[tuple[str, str]]:
    """Title of the panel and expression, with everything chosen that the variables offer."""
    for panel in board()["panels"]:
        for target in panel["targets"]:
            asked = target["expr"].replace("$__rate_interval", "1m")
            yield panel["title"], re.sub(r"\$\w+", ".+", asked)
