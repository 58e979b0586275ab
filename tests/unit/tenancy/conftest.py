"""What is asked of a whole application stands where those of the api stand."""

from unit.api.conftest import hub

__all__ = ["hub"]
