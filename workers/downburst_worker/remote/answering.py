"""A sender's answers to the hub's questions."""

from downburst.bus.port import Bus
from downburst.domain.events import DeliveriesAsked
from downburst.domain.tcp.tracing import TracerAsked
from downburst_worker.remote.deliveries import Ask, told_deliveries
from downburst_worker.remote.tracer import told_connections


async def answer_for_good(bus: Bus, name: str, ask_node: Ask) -> None:
    """Answers the hub's questions to the sender with this name, until cancelled."""
    with bus.subscribe(DeliveriesAsked, TracerAsked, limit=QUESTIONS) as questions:
        async for asked in questions:
            if isinstance(asked, DeliveriesAsked):
                async for delivery in told_deliveries(name, ask_node, asked):
                    bus.publish(delivery)
            elif isinstance(asked, TracerAsked):
                async for piece in told_connections(name, ask_node, asked):
                    bus.publish(piece)


QUESTIONS = 64
