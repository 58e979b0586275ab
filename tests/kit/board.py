"""The shipped Grafana dashboard, and its queries as Grafana sends them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parents[2] / "monitoring" / "grafana-downburst.json"


def board() -> dict[str, Any]:
    """The whole dashboard."""
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def questions() -> Iterator[tuple[str, str]]:
    """Panel titles and expressions, with all values of the variables selected."""
    for panel in board()["panels"]:
        for target in panel["targets"]:
            asked = target["expr"].replace("$__rate_interval", "1m")
            yield panel["title"], re.sub(r"\$\w+", ".+", asked)
