"""Deliveries: the computed state of one product for one site, with a reason and a next action.

Nothing here is stored or queried: facts of the node and of the ledger are the input, a judgement is the output.
`facts` holds the inputs, `states` determines the state of a product, `stages` splits its latency, `naming` parses
the ways in which users name a product.
"""

from downburst.deliveries.facts import (
    FoundDeliveries,
    Known,
    ProductFacts,
    ReceiptFacts,
    SentBytes,
    SessionFacts,
    SiteFacts,
    WaitingBytes,
)
from downburst.deliveries.matching import may_see
from downburst.deliveries.naming import Meaning, ProductName, meanings
from downburst.deliveries.stages import Stage, Timing, timing
from downburst.deliveries.states import Cause, Delivery, DeliveryState, deliver

__all__ = [
    "Cause",
    "Delivery",
    "DeliveryState",
    "FoundDeliveries",
    "Known",
    "Meaning",
    "ProductFacts",
    "ProductName",
    "ReceiptFacts",
    "SentBytes",
    "SessionFacts",
    "SiteFacts",
    "Stage",
    "Timing",
    "WaitingBytes",
    "deliver",
    "may_see",
    "meanings",
    "timing",
]
