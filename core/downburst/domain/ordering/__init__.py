"""Circuits on demand: offers, the providers behind them, and orders."""

from downburst.domain.ordering.offers import Budget, Offer, Setups, checked_offer
from downburst.domain.ordering.orders import OPEN, DemandOrder, OrderStep, OrderTimes, OrderUse
from downburst.domain.ordering.providers import Certificate, Dialect, Provider, checked_provider

__all__ = [
    "OPEN",
    "Budget",
    "Certificate",
    "DemandOrder",
    "Dialect",
    "Offer",
    "OrderStep",
    "OrderTimes",
    "OrderUse",
    "Provider",
    "Setups",
    "checked_offer",
    "checked_provider",
]
