"""Shared parts of the output: plain tables, and bytes in readable form."""

from rich.table import Column, Table


def plain(*names: str) -> Table:
    """A table without an edge; text too wide for the terminal is wrapped, not cut off."""
    return Table(*(Column(name, overflow="fold") for name in names), show_edge=False)


def volume(size_bytes: float) -> str:
    """Bytes in readable form."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return f"{size_bytes:.0f} B"
