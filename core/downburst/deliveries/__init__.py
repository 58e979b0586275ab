"""Deliveries: the computed state of one product for one site, with a reason and a next action.

Nothing here is stored or queried: facts of the node and of the ledger are the input, a judgement is the output.
`facts` holds the inputs, `states` determines the state of a product, `stages` splits its latency, `factors` ranks
what took the time, `naming` parses the ways in which users name a product.
"""

from downburst.deliveries.factors import CircuitNow, Factor, FactorName, PathNow, TcpThen, factors
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
    "CircuitNow",
    "Delivery",
    "DeliveryState",
    "Factor",
    "FactorName",
    "FoundDeliveries",
    "Known",
    "Meaning",
    "PathNow",
    "ProductFacts",
    "ProductName",
    "ReceiptFacts",
    "SentBytes",
    "SessionFacts",
    "SiteFacts",
    "Stage",
    "TcpThen",
    "Timing",
    "WaitingBytes",
    "deliver",
    "factors",
    "may_see",
    "meanings",
    "timing",
]
