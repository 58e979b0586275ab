"""Requests a probe, and follows it to its end."""

import sys
import time
from typing import Any

from downburst.foundation.errors import BadInput, Failure
from downburst_app.cli.client import HubClient, show
from downburst_app.cli.probes.tables import print_probe


def run(client: HubClient, wanted: dict[str, Any], *, wait: bool, as_json: bool) -> None:
    """Requests a probe and prints its outcome; one that did not complete is an error."""
    made = client.ask("POST", "v1", "probes", json=wanted)
    if wait:
        made = _followed(client, made)
    if as_json:
        show(made)
    elif wait:
        print_probe(client, made)
    else:
        print(
            f"probe {made['id']} of {made['site']} waits for its turn; follow it: downburst probe show {made['id']}"
        )
    if wait and made["state"] == "refused":
        raise BadInput(f"probe {made['id']} was refused: {made['reason']}")
    if wait and made["state"] != "done":
        raise Failure(f"probe {made['id']} is {made['state']}: {made['reason']}")


def _followed(client: HubClient, probe: dict[str, Any]) -> dict[str, Any]:
    """Waits for the end, and prints each change on standard error."""
    printed = ""
    while probe["ended_at"] is None:
        news = f"probe {probe['id']} is {probe['state']}" + (f": {probe['reason']}" if probe["reason"] else "")
        if news != printed:
            print(news, file=sys.stderr)
            printed = news
        time.sleep(LOOK_S)
        probe = client.ask("GET", "v1", "probes", str(probe["id"]))
    return probe


LOOK_S = 0.3
