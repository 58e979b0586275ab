"""The line by which the node fetches a product, and its answer."""

from downburst.domain.bridges import FetchedProduct, OriginLogin, WantedProduct
from downburst.foundation.clock import to_us
from downburst_worker.messages.export_lines import sha512_of
from downburst_worker.messages.lines import acknowledgement, stated
from downburst_worker.node import Line


def fetch_job(wanted: WantedProduct) -> Line:
    """The job that fetches a product and stores it."""
    product = wanted.product
    return {
        "url": wanted.url,
        "size": wanted.size_bytes,
        "stated": None if wanted.digest is None else dict(zip(("method", "value"), wanted.digest, strict=True)),
        "limits": {"private": wanted.may_ask_private},
        "credentials": None if wanted.login is None else _credentials(wanted.login),
        "feed": product.feed,
        "product_id": product.product_id,
        "created_us": None if product.created_at is None else to_us(product.created_at),
        "origin": product.origin,
        "properties": stated(product),
    }


def _credentials(login: OriginLogin) -> Line:
    return {"user": login.user, "password": login.password, "token": login.token}


def fetched_product(answer: Line) -> FetchedProduct:
    """The outcome of a download."""
    return FetchedProduct(acknowledgement(answer), sha512_of(answer).hex())
