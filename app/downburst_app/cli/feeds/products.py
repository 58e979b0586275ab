"""`downburst put`: sends files as products."""

from base64 import b64encode
from collections.abc import Iterator
from hashlib import file_digest
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from downburst.foundation.errors import BadInput
from downburst.foundation.names import check_feed_name, check_product_id
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, show


def put(  # noqa: PLR0913
    feed: Annotated[str, typer.Argument(help="Feed that the products go to.", autocompletion=completion.feeds)],
    product_id: Annotated[
        str, typer.Argument(help="Id of the product; with several files, {name} stands for each name.")
    ],
    files: Annotated[list[Path], typer.Argument(help="Files to send.")],
    *,
    created: Annotated[
        str | None, typer.Option(help="Time of creation: RFC 3339, or microseconds since 1970.")
    ] = None,
    origin: Annotated[str | None, typer.Option(help="Host of origin; the hub itself if left out.")] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Send files to a hub as products; each is checked by its SHA-256 on arrival.

    Example: downburst put NGRID "nam.t06z.awip1284.grib2" awip1284.grib2

    Example: downburst put 'IDS|DDPLUS' 'bulletins/{name}' bulletins/*.txt
    """
    check_feed_name(feed)
    for path, name in _named(product_id, files):
        answer = _send(HubClient(hub), path, (feed, name), given(created=created, origin=origin))
        show(answer) if as_json else print(_sentence(answer))


def _named(product_id: str, files: list[Path]) -> list[tuple[Path, str]]:
    if len(files) > 1 and "{name}" not in product_id:
        raise BadInput("several files need several ids; write {name} in the id, it stands for the name of each file")
    named = [(path, product_id.replace("{name}", path.name)) for path in files]
    for path, name in named:
        check_product_id(name)
        if not path.is_file():
            raise BadInput(f"{path} is not a file; check the path")
    return named


def _send(client: HubClient, path: Path, name: tuple[str, str], stamps: dict[str, Any]) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            digest = b64encode(file_digest(file, "sha256").digest()).decode()
            headers = {"Content-Digest": f"sha-256=:{digest}:", "Content-Length": str(file.tell())}
            headers |= {f"Downburst-{stamp.title()}": value for stamp, value in stamps.items()}
            file.seek(0)
            answer: dict[str, Any] = client.ask(
                "PUT", "v1", "feeds", name[0], "products", name[1], content=_parts(file), headers=headers
            )
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror}; check its rights") from error
    return answer


def _parts(file: BinaryIO) -> Iterator[bytes]:
    while part := file.read(256 * 1024):
        yield part


def _sentence(answer: dict[str, Any]) -> str:
    what = f"{answer['product_id']} ({answer['size']} bytes)"
    if answer["stored"]:
        return f"{what} stored as {answer['feed']} {answer['sequence']}"
    return f"{what} was already stored, as {answer['feed']} {answer['duplicate_of']}"
