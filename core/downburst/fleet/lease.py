"""A Lease of Kubernetes selects the active one of several processes.

The holder renews it; the others take it over once it was not renewed for its duration *by their own clocks*, so the
clocks of machines need not agree. Writes carry the version that was read, so of two simultaneous takeovers one
succeeds.
"""

from kubernetes.client import CoordinationV1Api, V1Lease, V1LeaseSpec, V1ObjectMeta
from kubernetes.client.exceptions import ApiException

from downburst.foundation.clock import Clock


class Lease:
    """One process's view of a lease. Calls block, and raise errors of the API server but conflict and absence."""

    def __init__(
        self, api: CoordinationV1Api, *, namespace: str, name: str, identity: str, clock: Clock, seconds: int = 15
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._clock = clock
        self._seconds = seconds
        self._seen: str | None = None
        """The version at the last look."""
        self._seen_since_s = 0.0

    def take(self) -> bool:
        """Tries once to take or renew the lease; returns True if this process holds it."""
        try:
            lease = self._api.read_namespaced_lease(self._name, self._namespace, _request_timeout=ANSWER_S)
        except ApiException as error:
            if error.status != NOT_FOUND:
                raise
            return self._written(None)
        held = lease.spec or V1LeaseSpec()
        if held.holder_identity in (None, "", self._identity) or self._stood_still(lease):
            return self._written(lease)
        return False

    def release(self) -> None:
        """Releases the lease for an immediate takeover; only if this process holds it."""
        lease = self._api.read_namespaced_lease(self._name, self._namespace, _request_timeout=ANSWER_S)
        if lease.spec is not None and lease.spec.holder_identity == self._identity:
            self._replace(lease, holder="")

    def _stood_still(self, lease: V1Lease) -> bool:
        now_s = self._clock.monotonic_s()
        version = _version(lease)
        if version != self._seen:
            self._seen, self._seen_since_s = version, now_s
        return now_s - self._seen_since_s > self._seconds

    def _written(self, lease: V1Lease | None) -> bool:
        try:
            if lease is None:
                body = V1Lease(metadata=V1ObjectMeta(name=self._name), spec=self._spec(self._identity, transitions=0))
                self._api.create_namespaced_lease(self._namespace, body, _request_timeout=ANSWER_S)
            else:
                self._replace(lease, holder=self._identity)
        except ApiException as error:
            # Another process was faster.
            if error.status != CONFLICT:
                raise
            return False
        return True

    def _replace(self, lease: V1Lease, *, holder: str) -> None:
        held = lease.spec or V1LeaseSpec()
        transitions = (held.lease_transitions or 0) + (held.holder_identity != holder)
        metadata = V1ObjectMeta(name=self._name, resource_version=_version(lease))
        body = V1Lease(metadata=metadata, spec=self._spec(holder, transitions=transitions))
        self._api.replace_namespaced_lease(self._name, self._namespace, body, _request_timeout=ANSWER_S)

    def _spec(self, holder: str, *, transitions: int) -> V1LeaseSpec:
        # The client omits a fraction of 0, and the server refuses a time without one.
        now = self._clock.now()
        return V1LeaseSpec(
            holder_identity=holder,
            lease_duration_seconds=self._seconds,
            lease_transitions=transitions,
            renew_time=now.replace(microsecond=now.microsecond or 1),
        )


def _version(lease: V1Lease) -> str | None:
    """A version that changes with every write, by any process."""
    return lease.metadata.resource_version if lease.metadata is not None else None


NOT_FOUND, CONFLICT = 404, 409
ANSWER_S = 10.0
