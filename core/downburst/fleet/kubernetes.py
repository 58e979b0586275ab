"""Senders as pods: one StatefulSet, applied by the server, that belongs to the release.

The chart defines a sender, this module the number of them. The holder of the lease applies the whole workload at each
look under one field manager, so the server reverts changes by others, and no comparison is needed here.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import yaml  # type: ignore[import-untyped]
from kubernetes import config as configuration
from kubernetes.client import ApiClient, AppsV1Api, Configuration, CoordinationV1Api, V1StatefulSet
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from downburst.fleet.lease import ANSWER_S, CONFLICT, NOT_FOUND, Lease
from downburst.fleet.port import Standing
from downburst.foundation.clock import Clock, SystemClock
from downburst.foundation.errors import BadSettings, Failure, FleetAway

T = TypeVar("T")


class KubernetesFleet:
    """The StatefulSet of a manifest, brought to a number of replicas."""

    def __init__(  # noqa: PLR0913
        self,
        client: ApiClient,
        manifest: dict[str, Any],
        *,
        namespace: str,
        identity: str,
        owner: str = "",
        clock: Clock | None = None,
        lease_s: int = 15,
    ) -> None:
        self._apps = AppsV1Api(client)
        self._client = client
        self._manifest = manifest
        self._namespace = namespace
        self._owner = owner
        self._lease = Lease(
            CoordinationV1Api(client),
            namespace=namespace,
            name=f"{self._name}-fleet",
            identity=identity,
            clock=clock or SystemClock(),
            seconds=lease_s,
        )

    @property
    def _name(self) -> str:
        return str(self._manifest["metadata"]["name"])

    async def bring_to(self, senders: int) -> Standing:
        """Applies the workload with so many replicas, if this process has the lease."""
        return await asyncio.to_thread(self._answered, lambda: self._apply(senders))

    async def standing(self) -> Standing:
        """The state of the workload on the server."""
        return await asyncio.to_thread(self._answered, self._standing)

    async def close(self) -> None:
        """Releases the lease; pods stay."""
        try:
            await asyncio.to_thread(self._answered, self._lease.release)
        except Failure:
            # The lease expires by itself.
            return
        finally:
            self._client.close()

    def _apply(self, senders: int) -> Standing:
        if not self._lease.take():
            return self._standing()
        body = {**self._manifest, "spec": {**self._manifest["spec"], "replicas": senders}}
        body["metadata"] = {**self._manifest["metadata"], "ownerReferences": self._owners()}
        kept = self._apps.patch_namespaced_stateful_set(
            self._name,
            self._namespace,
            body,
            field_manager=FIELD_MANAGER,
            force=True,
            _content_type="application/apply-patch+yaml",
            _request_timeout=ANSWER_S,
        )
        return _standing_of(kept, mine=True)

    def _standing(self) -> Standing:
        try:
            found = self._apps.read_namespaced_stateful_set(self._name, self._namespace, _request_timeout=ANSWER_S)
        except ApiException as error:
            if error.status != NOT_FOUND:
                raise
            return Standing(0, 0, mine=False)
        return _standing_of(found, mine=False)

    def _owners(self) -> list[dict[str, Any]]:
        if not self._owner:
            return []
        found = self._apps.read_namespaced_deployment(self._owner, self._namespace, _request_timeout=ANSWER_S)
        uid = found.metadata.uid if found.metadata is not None else None
        return [{"apiVersion": "apps/v1", "kind": "Deployment", "name": self._owner, "uid": uid}]

    def _answered(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except HTTPError as error:
            raise FleetAway(f"Kubernetes' API server does not answer ({type(error).__name__})") from error
        except ApiException as error:
            raise _explained(error, self._namespace) from error


def client_here() -> tuple[ApiClient, str]:
    """A client of the cluster in which this process is a pod, and its namespace; by KUBECONFIG elsewhere."""
    told = Configuration()
    # Each look is a single attempt.
    told.retries = False
    try:
        configuration.load_incluster_config(client_configuration=told)
        return ApiClient(told), _NAMESPACE.read_text().strip()
    except (configuration.ConfigException, OSError):
        pass
    try:
        configuration.load_kube_config(client_configuration=told)
        _, active = configuration.list_kube_config_contexts()
    except (configuration.ConfigException, OSError) as error:
        raise BadSettings(
            "fleet.kind is kubernetes, and this process is neither a pod with an account nor has a KUBECONFIG; "
            "run it by the chart, or set fleet.kind = children"
        ) from error
    return ApiClient(told), active["context"].get("namespace", "default")


def manifest_of(path: Path) -> dict[str, Any]:
    """The workload in a file; raises `BadSettings` if it is none."""
    try:
        found = yaml.safe_load(path.read_text())
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise BadSettings(
            f"the workload of senders {path} can't be read ({error}); correct fleet.manifest"
        ) from error
    if not isinstance(found, dict) or found.get("kind") != "StatefulSet":
        raise BadSettings(f"{path} holds no StatefulSet; fleet.manifest names the file that the chart makes")
    return found


def _standing_of(found: V1StatefulSet, *, mine: bool) -> Standing:
    wanted = found.spec.replicas if found.spec is not None else None
    ready = found.status.ready_replicas if found.status is not None else None
    return Standing(wanted or 0, ready or 0, mine=mine)


def _explained(error: ApiException, namespace: str) -> Failure:
    if error.status == FORBIDDEN:
        return Failure(
            f"this process may not manage senders in namespace {namespace}; give its account the chart's role "
            f"({_reason(error)})"
        )
    if error.status in (UNAUTHORIZED, CONFLICT, TOO_MANY) or error.status is None or error.status >= SERVER_ERROR:
        return FleetAway(f"Kubernetes' API server refused for now: {error.status} {error.reason}")
    return Failure(f"Kubernetes refuses the senders of namespace {namespace}: {_reason(error)}")


def _reason(error: ApiException) -> str:
    try:
        return str(yaml.safe_load(error.body or "")["message"])
    except (yaml.YAMLError, KeyError, TypeError):
        return f"{error.status} {error.reason}"


FIELD_MANAGER = "downburst-fleet"
UNAUTHORIZED, FORBIDDEN, TOO_MANY, SERVER_ERROR = 401, 403, 429, 500
_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
