"""Resources that callers hold for long: live streams, uploads, and bodies in processing."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from downburst.domain.access import LOCAL, Caller
from downburst.network.addresses import network_of
from downburst.settings.limits import LimitSettings
from downburst_api.border.bodies import Body
from downburst_api.border.budgets import Budget, tenant_of
from downburst_api.border.route_rules import Holds, Rule


class Tenants:
    """Budgets of all callers; the hub's own user has none, because that user can stop the hub anyway."""

    def __init__(self, limits: LimitSettings) -> None:
        self._limits = limits
        self.streams = Budget(limits.streams, what="live streams of this user or site", retry_after_s=30)
        self.streams_by_address = Budget(
            limits.streams_per_address, what="live streams from this address", retry_after_s=30
        )
        self.uploads = Budget(limits.uploads, what="uploads of this user or site", retry_after_s=1)
        self.bodies = Budget(limits.bodies_bytes, what="bytes of requests of this user or site", retry_after_s=1)

    def most_bytes(self, caller: Caller) -> int:
        """The longest body accepted from this caller."""
        return self._limits.body_bytes if caller.known else self._limits.body_bytes_without_login

    @contextmanager
    def holding(self, rule: Rule, caller: Caller, body: Body) -> Iterator[None]:
        """Counts a request against its tenant's budget while the block runs; refuses one above it."""
        with ExitStack() as stack:
            if caller.name != LOCAL:
                for budget, holder, amount in self._needs(rule, caller, body):
                    stack.enter_context(budget.held(holder, amount))
            yield

    def _needs(self, rule: Rule, caller: Caller, body: Body) -> Iterator[tuple[Budget, str, int]]:
        tenant = tenant_of(caller)
        if rule.holds is Holds.STREAM:
            yield self.streams, tenant, 1
            yield self.streams_by_address, network_of(caller.peer), 1
        elif rule.holds is Holds.UPLOAD:
            yield self.uploads, tenant, 1
        else:
            yield self.bodies, tenant, body.needs_bytes(self.most_bytes(caller))
