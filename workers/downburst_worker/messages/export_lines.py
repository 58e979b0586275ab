"""The lines by which products leave a feed for another system, and their answers."""

from pathlib import Path

from downburst.domain.bridges.exporting import ExportedFile, ExportedProduct, Followed
from downburst.foundation.bounds import OutOfBounds
from downburst.foundation.clock import from_us
from downburst_worker.node import Line


def follow_job(feed: str, after: int, limit: int) -> Line:
    """The job that lists the products behind a number, in their order."""
    return {"feed": feed, "after": after, "limit": limit}


def followed(answer: Line) -> Followed:
    """Parses the answer."""
    products = tuple(map(_exported, answer["products"]))
    return Followed(str(answer["epoch"]), int(answer["head"]), int(answer["read_to"]), products)


def export_job(feed: str, epoch: str, sequence: int, path: Path) -> Line:
    """The job that writes the bytes of a product into a file."""
    return {"feed": feed, "epoch": epoch, "sequence": sequence, "path": str(path)}


def exported_file(answer: Line, path: Path) -> ExportedFile:
    """Parses the answer."""
    return ExportedFile(_exported(answer), sha512_of(answer), path)


def sha512_of(answer: Line) -> bytes:
    """The digest in an answer."""
    digits = answer["sha512"]
    if not isinstance(digits, str) or len(digits) != SHA512_DIGITS or not set(digits) <= set("0123456789abcdef"):
        raise OutOfBounds("the node's sha512 is not 128 hexadecimal digits")
    return bytes.fromhex(digits)


def _exported(line: Line) -> ExportedProduct:
    properties = line.get("properties")
    return ExportedProduct(
        line["feed"],
        line["epoch"],
        line["sequence"],
        line["product_id"],
        line["size"],
        from_us(line["stored_us"]),
        None if properties is None else properties.encode(),
    )


SHA512_DIGITS = 128
