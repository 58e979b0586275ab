"""Products and deliveries in answers."""

from collections import Counter
from collections.abc import Sequence

from downburst.deliveries import Delivery, Factor, ProductFacts, Timing
from downburst.deliveries.facts import ReceiptFacts
from downburst_api.deliveries.bridged import Records, bridged_out
from downburst_contract import products as shapes
from downburst_contract.base import members


def product_out(
    product: ProductFacts, records: Records, deliveries: Sequence[tuple[Delivery, Sequence[Factor]]]
) -> shapes.ProductTraced:
    """A product with its delivery to each site, and the factors of the time that it took."""
    return shapes.ProductTraced(
        **members(product, without=("properties",), size="size_bytes"),
        bridged=bridged_out(product, records),
        states=dict(Counter(delivery.state.value for delivery, _ in deliveries)),
        deliveries=[_delivery(*one) for one in deliveries],
    )


def _delivery(delivery: Delivery, factors: Sequence[Factor]) -> shapes.Delivery:
    """A product's state for one site."""
    receipt = None if delivery.receipt is None else _receipt(delivery.receipt)
    kept = members(delivery, without=("receipt", "timing"))
    told = [shapes.Factor(**members(factor, factor="name")) for factor in factors]
    return shapes.Delivery(**kept, receipt=receipt, timing=_timing(delivery.timing), factors=told)


def _timing(timing: Timing) -> shapes.Timing:
    stages = [shapes.Stage(**members(stage, stage="name"), certainty=stage.certainty) for stage in timing.stages]
    return shapes.Timing(**members(timing, without=("stages", "sentence")), stages=stages)


def _receipt(receipt: ReceiptFacts) -> shapes.Receipt:
    return shapes.Receipt(**members(receipt, first_byte_sent_at="first_byte_at"))
