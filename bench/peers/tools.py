"""Programs of peers that a measurement runs."""

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
PEERS = _ROOT / ".cache" / "peers"
"""Programs of peers, in the versions that `bench` locks."""
