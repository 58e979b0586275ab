"""Prepared provider agents on this machine, in the directory that DOWNBURST_PEERS names.

supa/bin/supa                 SuPA, installed in a virtual environment of its own
polynsi.jar                   PolyNSI, with all that it needs
java/bin/java                 the Java that runs it, 21 or later; without it the one on PATH
opennsa/bin/twistd            a virtual environment with what OpenNSA needs
opennsa-source/opennsa/       OpenNSA itself
opennsa-source/datafiles/     with its schema.sql
"""

import os
import shutil
from pathlib import Path

from kit.capabilities import skip


def directory() -> Path:
    """The directory of the prepared agents; skips the test if none is named."""
    named = os.environ.get("DOWNBURST_PEERS", "")
    if not named:
        skip(
            "DOWNBURST_PEERS names no directory of prepared provider agents; docs/circuits-peers.md tells its layout"
        )
    return Path(named).resolve()


def prepared(*names: str) -> list[Path]:
    """The named files; skips the test if one is missing."""
    found = [directory() / name for name in names]
    missing = [str(path) for path in found if not path.exists()]
    if missing:
        skip(f"not prepared in DOWNBURST_PEERS: {', '.join(missing)}; docs/circuits-peers.md tells the layout")
    return found


def java() -> Path:
    """The Java for PolyNSI; skips the test if there is none."""
    own, on_path = directory() / "java" / "bin" / "java", shutil.which("java")
    if own.exists():
        return own
    if on_path is None:
        skip("there is no Java for PolyNSI: neither java/bin/java in DOWNBURST_PEERS nor one on PATH")
    return Path(on_path)
