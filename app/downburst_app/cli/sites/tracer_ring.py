"""A ring of samples on this machine, read by the node's own tool: a hub's, or that of `downburst-node tracer`."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from downburst.foundation.errors import BadInput
from downburst_api.sites.tracing import traced_out
from downburst_app.cli.ldm.ldm_tools import node_path, sentence_of
from downburst_worker.messages.tracer_lines import traced_site


def of_ring(
    ring: Path, site: str | None, *, last_s: float | None, points: int, variables: Sequence[str]
) -> dict[str, Any]:
    """The answer about a ring: of one site, or of all its connections. `last_s` seconds end at the newest sample."""
    argv = [node_path(), "tracer", "--read", "--json", f"--ring={ring}", f"--points={points}"]
    argv += [f"--site={site}"] if site is not None else []
    argv += [f"--seconds={last_s:f}"] if last_s is not None else []
    argv += [f"--variables={','.join(variables)}"] if variables else []
    told = subprocess.run(argv, capture_output=True, text=True, check=False)
    if told.returncode != 0:
        raise BadInput(sentence_of(told.stderr))
    found = traced_site(json.loads(told.stdout))
    return traced_out(site or str(ring), found).model_dump(mode="json")
