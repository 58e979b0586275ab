"""A whole hub whose enrolled sites are hostile, beside honest ones, a source, a user and sites that are new."""

from kit.siege.story import HONEST, HOSTILE, Siege

__all__ = ["HONEST", "HOSTILE", "Siege"]
