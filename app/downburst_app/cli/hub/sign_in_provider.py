"""The doctor's finding about the provider of OpenID Connect of a running hub."""

from collections.abc import Iterator

from downburst.foundation.errors import DownburstError
from downburst_app.cli.client import HubClient
from downburst_app.cli.hub.findings import OK, WEAK, Found


def provider_found(http: str) -> Iterator[Found]:
    """Whether the provider of a hub answers now. `http`: HOST:PORT of a hub that answers."""
    from downburst_contract.access import SignInWays

    try:
        ways = SignInWays.model_validate(HubClient(f"http://{http}").ask("GET", "v1", "session", "ways"))
    except (DownburstError, ValueError) as error:
        yield WEAK, f"the hub does not show its ways to sign in: {error}"
        return
    if ways.provider is None:
        yield OK, "users sign in with passwords; access.oidc.issuer names no provider"
    elif ways.provider.problem is None:
        yield OK, f"users sign in with passwords and at {ways.provider.name}, which answers"
    else:
        remedy = "check access.oidc, the provider, and the network between; passwords work without it"
        yield WEAK, ways.provider.problem, remedy
