"""The facts that alarms are judged by, at one moment: from the ledger, the hub's process and the watch itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from downburst.domain.alarms import Objective
from downburst.domain.circuits import Circuit
from downburst.domain.credentials import Credential
from downburst.domain.feeds import Feed
from downburst.domain.plans import Plan
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.sketches.sheet import Sheet
from downburst.supervision import HandlerFault
from downburst_alarms.gaps import Gaps
from downburst_alarms.hub_facts import HubFacts
from downburst_alarms.violations import Violations


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """Operators' settings, and measurements."""

    credentials: Sequence[Credential] = ()
    """Credentials of receivers, including expired ones. A site without any is not expected to connect."""
    feeds: Sequence[Feed] = ()
    sites: Sequence[Site] = ()
    subscriptions: Sequence[Subscription] = ()
    objectives: Sequence[Objective] = ()
    """Objectives of single sites."""
    latencies: Sheet = field(default_factory=Sheet.empty)
    """Distribution latencies by the minute, of the longest window of an objective."""
    circuits: Sequence[Circuit] = ()
    plans: Sequence[Plan] = ()
    standing: frozenset[str] = frozenset()
    """Keys of the open alarms."""


@dataclass(frozen=True, slots=True)
class Situation:
    """All facts at one moment."""

    now: datetime
    started_at: datetime
    """The start of the watch."""
    ledger: LedgerFacts = field(default_factory=LedgerFacts)
    hub: HubFacts = field(default_factory=HubFacts)
    gaps: Mapping[str, Gaps] = field(default_factory=dict)
    arrivals_known_to: datetime | None = None
    """The end of the node's last report of arrivals; None before the first."""
    standstills: Mapping[tuple[str, str], datetime] = field(default_factory=dict)
    """By site and feed, the begin of a time in which products wait and none is settled."""
    remote_faults: Sequence[HandlerFault] = ()
    """Recent unexpected errors of handlers in other processes of the hub."""
    violations: Mapping[str, Violations] = field(default_factory=dict)
    """By site, its recent reports of impossible values."""
    peer_violations: Mapping[str, Violations] = field(default_factory=dict)
    """The same of LDM peers, by the peer's name or address."""
