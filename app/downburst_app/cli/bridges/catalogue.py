"""Datasets in a Global Discovery Catalogue, which the command asks itself: the hub takes no part in it."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from downburst.domain.bridges.origins import check_web_address
from downburst.foundation.errors import BadInput, Failure
from downburst.wis2.catalogue import CatalogueDataset, read_record, read_records, records_url
from downburst_app.cli.client import AsJson, given, show, table
from downburst_app.cli.columns import Further, Wide

if TYPE_CHECKING:
    import httpx

Catalogue = Annotated[str, typer.Option("--catalogue", help="Address of a Global Discovery Catalogue, https://….")]


def search_datasets(
    text: Annotated[str, typer.Argument(help="Words to look for, such as synop.")],
    *,
    catalogue: Catalogue,
    bbox: Annotated[str | None, typer.Option(help="WEST,SOUTH,EAST,NORTH in degrees.")] = None,
    most: Annotated[int, typer.Option(min=1, max=1_000, help="The most datasets to list.")] = 50,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Search a Global Discovery Catalogue for datasets of WIS2.

    Example: downburst bridges search synop --catalogue https://wis2-gdc.weather.gc.ca
    """
    found, matched = found_in(catalogue, given(q=text, bbox=bbox), most)
    if as_json:
        show([shown(one) for one in found])
        return
    table(
        "datasets",
        ("metadata id", "title", Further("centre"), "policy", Further("topics"), Further("brokers")),
        (_line(one) for one in found),
        wide=wide,
        empty=f"the catalogue has no dataset for {text!r}",
    )
    if matched > len(found):
        print(f"{matched} datasets fit, and {len(found)} are listed: give --most, or more words")


def found_in(catalogue: str, wanted: dict[str, str], most: int) -> tuple[list[CatalogueDataset], int]:
    """The first datasets for some words, page by page, and the number of all that fit."""
    found: list[CatalogueDataset] = []
    offset, matched = 0, 0
    with _client() as client:
        while len(found) < most:
            page = {"f": "json", "limit": str(min(PAGE, most - len(found))), "offset": str(offset)}
            records = read_records(_body(client, _address(catalogue), wanted | page))
            found += records.datasets
            offset += records.records
            matched = records.matched if records.matched is not None else offset
            if records.records == 0 or offset >= matched:
                break
    return found[:most], matched


def dataset_in(catalogue: str, metadata_id: str) -> CatalogueDataset:
    """One dataset; refuses one without a subscription."""
    with _client() as client:
        found = read_record(_body(client, _address(catalogue, metadata_id), {"f": "json"}))
    if not found.topics:
        raise BadInput(f"the record of {metadata_id} names no broker with a topic of data; give --broker and --topic")
    return found


def shown(dataset: CatalogueDataset) -> dict[str, Any]:
    """A dataset for programs."""
    brokers = [{"url": one.url, "user": one.user} for one in dataset.brokers]
    return asdict(dataset) | {"centre": dataset.centre, "topics": list(dataset.topics), "brokers": brokers}


def _line(dataset: CatalogueDataset) -> list[object]:
    brokers = ", ".join(one.host for one in dataset.brokers)
    return [
        dataset.metadata_id,
        dataset.title,
        dataset.centre,
        dataset.policy,
        ", ".join(dataset.topics) or "none",
        brokers,
    ]


def _address(catalogue: str, metadata_id: str | None = None) -> str:
    return records_url(check_web_address(catalogue, "a catalogue"), metadata_id)


def _client() -> "httpx.Client":
    import httpx

    headers = {"Accept": "application/geo+json, application/json", "Accept-Encoding": "identity"}
    return httpx.Client(timeout=TIMEOUT_S, follow_redirects=True, max_redirects=3, headers=headers)


def _body(client: "httpx.Client", url: str, parameters: dict[str, str]) -> bytes:
    """An answer with status 200, within bounds; one sentence about any other outcome."""
    import httpx

    host = httpx.URL(url).host
    try:
        with client.stream("GET", url, params=parameters) as answer:
            if answer.status_code == httpx.codes.NOT_FOUND:
                raise BadInput(f"{host} does not have {answer.url.path}; check the metadata id, and the address")
            if answer.status_code != httpx.codes.OK:
                raise Failure(f"{host} answers with status {answer.status_code}; try another catalogue")
            body = bytearray()
            for piece in answer.iter_raw():
                body += piece
                if len(body) > MOST_BYTES:
                    raise Failure(f"{host} answers with more than {MOST_BYTES // 1_000_000} MB; give more words")
            return bytes(body)
    except httpx.HTTPError as error:
        raise Failure(f"{host} can't be asked: {error}; try another catalogue") from error


PAGE = 50
TIMEOUT_S = 60.0
MOST_BYTES = 50_000_000
