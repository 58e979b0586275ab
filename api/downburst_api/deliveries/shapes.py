"""Products and deliveries in answers."""

from collections import Counter
from collections.abc import Sequence

from downburst.deliveries import Delivery, ProductFacts, Timing
from downburst.deliveries.facts import ReceiptFacts
from downburst_contract import products as shapes
from downburst_contract.base import members


def product_out(product: ProductFacts, deliveries: Sequence[Delivery]) -> shapes.ProductTraced:
    """A product with its delivery to each site."""
    kept = members(product, size="size_bytes")
    states = dict(Counter(delivery.state.value for delivery in deliveries))
    return shapes.ProductTraced(**kept, states=states, deliveries=[delivery_out(one) for one in deliveries])


def delivery_out(delivery: Delivery) -> shapes.Delivery:
    """A product's state for one site."""
    receipt = None if delivery.receipt is None else _receipt(delivery.receipt)
    kept = members(delivery, without=("receipt", "timing"))
    return shapes.Delivery(**kept, receipt=receipt, timing=_timing(delivery.timing))


def _timing(timing: Timing) -> shapes.Timing:
    stages = [shapes.Stage(**members(stage, stage="name")) for stage in timing.stages]
    return shapes.Timing(**members(timing, without=("stages", "sentence")), stages=stages)


def _receipt(receipt: ReceiptFacts) -> shapes.Receipt:
    return shapes.Receipt(**members(receipt, first_byte_sent_at="first_byte_at"))
