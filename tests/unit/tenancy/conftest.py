"""Makes the API's fixture of a whole application available to these tests."""

from unit.api.conftest import hub

__all__ = ["hub"]
