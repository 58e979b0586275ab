"""The files that a provider's record names."""

from downburst.domain.ordering.providers import Certificate, Provider, checked_provider
from downburst.foundation.errors import BadInput


def check_provider(provider: Provider) -> None:
    """Raises one sentence if the record can't be used: an impossible value, or a file that is not there."""
    checked_provider(provider)
    if provider.certificate is not None:
        _check_files(provider.name, provider.certificate)


def _check_files(name: str, files: Certificate) -> None:
    for what, path in (
        ("certificate", files.certificate),
        ("certificate's key", files.key),
        ("authorities' file", files.authorities),
    ):
        if not path.is_file():
            raise BadInput(f"provider {name}: the {what} {path} is not a file; correct the path")
