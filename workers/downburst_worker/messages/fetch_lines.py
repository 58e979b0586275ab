"""The line by which the node fetches products, and its answers."""

import logging
from collections.abc import Sequence
from functools import partial

from downburst.domain.bridges import FetchEnd, OriginLogin, WantedProduct
from downburst.foundation.bounds import OutOfBounds, SetAside, count, each, entries, sentence
from downburst.foundation.clock import to_us
from downburst.foundation.errors import from_node
from downburst_worker.messages.lines import stated
from downburst_worker.node import Line


def fetch_job(wanted: Sequence[WantedProduct]) -> Line:
    """The job that fetches products and stores them: all of one feed, and all with the same right to ask."""
    return {
        "feed": wanted[0].product.feed,
        "limits": {"private": wanted[0].may_ask_private},
        "products": [_wanted(one) for one in wanted],
    }


def _wanted(wanted: WantedProduct) -> Line:
    product = wanted.product
    return {
        "url": wanted.url,
        "size": wanted.size_bytes,
        "stated": None if wanted.digest is None else dict(zip(("method", "value"), wanted.digest, strict=True)),
        "credentials": None if wanted.login is None else _credentials(wanted.login),
        "product_id": product.product_id,
        "created_us": None if product.created_at is None else to_us(product.created_at),
        "origin": product.origin,
        "properties": stated(product),
    }


def _credentials(login: OriginLogin) -> Line:
    return {"user": login.user, "password": login.password, "token": login.token}


def fetch_ends(answer: Line, products: int) -> tuple[FetchEnd, ...]:
    """The ends in an answer to a job with so many products; an impossible one is passed over."""
    aside: list[SetAside] = []
    found = entries(answer.get("ends"), most=products)
    ends = each(found, partial(_end, products=products), "the end of a download", aside)
    for one in aside:
        _LOG.error("an answer of the node: %s", one.sentence)
    return ends


def _end(line: Line, *, products: int) -> FetchEnd:
    place = count(line["product"])
    if place >= products:
        raise OutOfBounds(f"the node ended the product {place} of {products}")
    if "code" in line:
        return FetchEnd(place, refusal=from_node(str(line["code"]), sentence(line["error"])))
    known = line.get("sequence", line.get("duplicate_of"))
    # The log may have forgotten all but the number of a product that it had before.
    return FetchEnd(place, sequence=count(known), size_bytes=count(line["size"] or 0))


_LOG = logging.getLogger(__name__)
