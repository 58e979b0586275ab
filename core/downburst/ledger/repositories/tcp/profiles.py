"""TCP profiles, with the outcomes of their trials."""

from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from downburst.domain.tcp.profiles import ProfileMode, TcpKnobs, TcpProfile, TcpTrial, TrialStep
from downburst.foundation.clock import Clock, from_us, to_us
from downburst.foundation.errors import AlreadyThere, NotFound
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.storage import limits
from downburst.ledger.tables.tcp_profiles import tcp_profiles


class TcpProfiles:
    """Profiles by name."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self) -> list[TcpProfile]:
        """Every profile, by name."""
        query = select(tcp_profiles).order_by(tcp_profiles.c.name)
        return [_profile(row) for row in self._connection.execute(query)]

    def find(self, name: str) -> TcpProfile | None:
        """The profile, if there is one."""
        row = self._connection.execute(select(tcp_profiles).where(tcp_profiles.c.name == name)).one_or_none()
        return None if row is None else _profile(row)

    def one(self, name: str) -> TcpProfile:
        """The profile; refuses an unknown name."""
        found = self.find(name)
        if found is None:
            raise NotFound(f"there is no TCP profile {name!r}; `downburst tcp-profiles list` shows all")
        return found

    def put(self, wanted: TcpProfile) -> TcpProfile:
        """Adds a profile, or gives it exactly these values; refuses the prefix of another one.

        Learnt values and the last trial stay while prefix, mode and values stay.
        """
        self._check_prefix(wanted)
        before = self.find(wanted.name)
        if before is None:
            return self._add(wanted)
        if _declared(before) == _declared(wanted):
            return before
        changed = replace(wanted, learnt=None, trial=None, created_at=before.created_at, changed_at=self._clock.now())
        self._write(changed)
        self._audit.record(KIND, wanted.name, "changed", before=before, after=changed)
        return changed

    def restore(self, earlier: TcpProfile | None, name: str) -> None:
        """Undoes a change that the node refused."""
        before = self.one(name)
        if earlier is None:
            self._connection.execute(delete(tcp_profiles).where(tcp_profiles.c.name == name))
        else:
            self._write(earlier)
        self._audit.record(KIND, name, "refused", before=before, after=earlier)

    def remove(self, name: str) -> None:
        """Removes a profile."""
        before = self.one(name)
        self._connection.execute(delete(tcp_profiles).where(tcp_profiles.c.name == name))
        self._audit.record(KIND, name, "removed", before=before)

    def tried(self, trial: TcpTrial) -> None:
        """Stores a step of a trial; of a profile that is gone, or has other values by now, it is no news."""
        before = self.find(trial.profile)
        if before is None or not _is_of(trial, before):
            return
        after = before.after(trial)
        self._write(after)
        self._audit.record(KIND, trial.profile, WORDS[trial.step], before=before, after=after)

    def _add(self, wanted: TcpProfile) -> TcpProfile:
        limits.TCP_PROFILES.check(self._connection, tcp_profiles, holder="this hub")
        now = self._clock.now()
        kept = replace(wanted, learnt=None, trial=None, created_at=now, changed_at=now)
        self._connection.execute(insert(tcp_profiles).values(_row(kept)))
        self._audit.record(KIND, kept.name, "added", after=kept)
        return kept

    def _write(self, profile: TcpProfile) -> None:
        change = update(tcp_profiles).where(tcp_profiles.c.name == profile.name)
        self._connection.execute(change.values(_row(profile)))

    def _check_prefix(self, wanted: TcpProfile) -> None:
        others = tcp_profiles.c.prefix == wanted.prefix, tcp_profiles.c.name != wanted.name
        taken = self._connection.scalar(select(tcp_profiles.c.name).where(*others))
        if taken is not None:
            raise AlreadyThere(
                f"TCP profile {taken!r} already has the prefix {wanted.prefix}; change that one, or choose a longer "
                "or shorter prefix"
            )


def _declared(profile: TcpProfile) -> tuple[str, ProfileMode, TcpKnobs]:
    return profile.prefix, profile.mode, profile.knobs


def _is_of(trial: TcpTrial, profile: TcpProfile) -> bool:
    """True if a trial is about the present values: a node may report one of the values before a change."""
    return profile.mode is ProfileMode.LEARN or (profile.mode is ProfileMode.TRIAL and trial.knobs == profile.knobs)


def _row(profile: TcpProfile) -> dict[str, Any]:
    trial = profile.trial
    return {
        "name": profile.name,
        "prefix": profile.prefix,
        "mode": profile.mode.value,
        "knobs": asdict(profile.knobs),
        "learnt": None if profile.learnt is None else asdict(profile.learnt),
        "trial": None if trial is None else asdict(trial) | {"step": trial.step.value, "at": to_us(trial.at)},
        "created_at": profile.created_at,
        "changed_at": profile.changed_at,
    }


def _profile(row: Row[Any]) -> TcpProfile:
    values = dict(row._mapping)
    values["mode"] = ProfileMode(values["mode"])
    values["knobs"] = TcpKnobs(**values["knobs"])
    values["learnt"] = None if values["learnt"] is None else TcpKnobs(**values["learnt"])
    values["trial"] = None if values["trial"] is None else _trial(values["trial"])
    return TcpProfile(**values)


def _trial(values: dict[str, Any]) -> TcpTrial:
    knobs = {name: TcpKnobs(**values[name]) for name in ("knobs", "before")}
    return TcpTrial(**values | knobs | {"step": TrialStep(values["step"]), "at": from_us(values["at"])})


KIND = "TCP profile"
WORDS = {
    TrialStep.BEGAN: "trial began",
    TrialStep.KEPT: "trial kept",
    TrialStep.NOT_BETTER: "not better",
    TrialStep.TAKEN_BACK: "taken back",
}
