"""The tunnels of relays that go into the ledger: each one at its end, and each hour until then."""

from downburst.domain.relays.report import RelayReport, Tunnel


class TunnelRecords:
    """Remembers the last record of each open tunnel."""

    def __init__(self) -> None:
        self._recorded_s: dict[str, dict[str, float]] = {}
        """By relay and address of the tunnel's peer, its age at the last record."""

    def to_record(self, report: RelayReport) -> list[Tunnel]:
        """The tunnels that are due for a record."""
        before = self._recorded_s.get(report.relay, {})
        due = [one for one in report.tunnels if one.ended or one.seconds - before.get(one.site_side, 0) >= EACH_S]
        now = {one.site_side: before.get(one.site_side, 0) for one in report.tunnels if not one.ended}
        self._recorded_s[report.relay] = now | {one.site_side: one.seconds for one in due if not one.ended}
        return due


EACH_S = 3_600
