"""`downburst circuits providers`: other networks' providers of circuits."""

from typing import TYPE_CHECKING, Annotated

import typer

from downburst.domain.ordering import Dialect
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.circuits.records import Kind
from downburst_app.cli.client import AsJson, HubAddress, HubClient, Yes, given, show, table
from downburst_app.cli.columns import Further, Wide

if TYPE_CHECKING:
    from downburst_contract.ordering import CircuitProviderWanted

app = typer.Typer(
    help="List, set and remove providers: other networks that are asked for circuits by NSI.", no_args_is_help=True
)
Name = Annotated[
    str, typer.Argument(help="Name of the provider, for example surf.", autocompletion=completion.providers)
]
File = Annotated[str | None, typer.Option(help="Absolute path on the hub's machine, in PEM; none: no file.")]


@app.command("list")
def list_providers(*, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the providers.

    Example: downburst circuits providers list
    """
    found = HubClient(hub).ask("GET", "v1", "circuit-providers")
    if as_json:
        show(found)
        return
    columns = ("provider", "url", "provider_nsa", "dialect", "certificate")
    table(
        "Providers of circuits",
        ("provider", "URL", Further("NSA"), "dialect", Further("certificate")),
        ([one[name] for name in columns] for one in found["providers"]),
        wide=wide,
        empty="there are no providers; add one: downburst circuits providers set --help",
    )


@app.command("set")
def set_provider(  # noqa: PLR0913
    provider: Name,
    *,
    url: Annotated[str | None, typer.Option(help="Of its Connection Service.")] = None,
    provider_nsa: Annotated[str | None, typer.Option(help="Its name: urn:ogf:network:...")] = None,
    requester_nsa: Annotated[str | None, typer.Option(help="The hub's name at the provider.")] = None,
    dialect: Annotated[
        Dialect | None, typer.Option(help="Its form of a change: p2ps for SuPA and OSCARS, none for OpenNSA.")
    ] = None,
    certificate: File = None,
    key: File = None,
    authorities: File = None,
    reply_to: Annotated[str | None, typer.Option(help="Address for callbacks; none: the hub asks instead.")] = None,
    service_type: Annotated[str | None, typer.Option(help="Type of the service; EVTS.A-GOLE by default.")] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Add a provider, or change the given values of one; certificate, key and authorities belong together.

    Example: downburst circuits providers set surf --url https://nsi.example.net/provider --provider-nsa
    urn:ogf:network:example.net:2026:nsa --requester-nsa urn:ogf:network:hub.example:2026:nsa --certificate
    /etc/downburst/hub.pem --key /etc/downburst/hub.key --authorities /etc/downburst/ca.pem

    Example: downburst circuits providers set surf --dialect p2ps
    """
    clearable = given(certificate=certificate, key=key, authorities=authorities, reply_to=reply_to)
    wanted = given(
        url=url,
        provider_nsa=provider_nsa,
        requester_nsa=requester_nsa,
        dialect=None if dialect is None else dialect.value,
        service_type=service_type,
    )
    wanted |= {name: None if text == "none" else text for name, text in clearable.items()}
    made = PROVIDERS.put(HubClient(hub), provider, wanted)
    show(made) if as_json else print(f"provider {provider}: {made['provider_nsa']} at {made['url']}")


@app.command("remove")
def remove_provider(
    provider: Name, *, yes: Yes = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False
) -> None:
    """Remove a provider that no offer and no unfinished circuit needs.

    Example: downburst circuits providers remove surf
    """
    PROVIDERS.remove(HubClient(hub), provider, "Its files stay.", yes=yes, as_json=as_json)


def _wanted() -> "type[CircuitProviderWanted]":
    from downburst_contract.ordering import CircuitProviderWanted

    return CircuitProviderWanted


PROVIDERS = Kind(
    "provider",
    "circuit-providers",
    _wanted,
    {"--url": "url", "--provider-nsa": "provider_nsa", "--requester-nsa": "requester_nsa"},
)
