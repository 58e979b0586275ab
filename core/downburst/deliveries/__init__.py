"""Deliveries: the computed state of one product for one site, with a reason and a next action.

Nothing here is stored and nothing here asks anybody: facts of the node and of the ledger come in, a judgement comes
out. `facts` holds what is known, `states` judges where a product is, `stages` where its time went, `naming` reads
what people write when they mean a product.
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
