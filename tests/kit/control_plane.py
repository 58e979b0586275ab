"""A Kubernetes control plane of the tests' own on the loopback interface: etcd, API server, controllers, scheduler.

It has no node: pods are created, admitted and stored, and wait for a node. Tests examine the objects of a chart as
the API server and the controllers made them. `kit.cluster_node` is a node for one that the hosts of a lab reach.
"""

import csv
import json
import shutil
import ssl
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from kit.capabilities import skip
from kit.cluster_tools import tool
from kit.patience import wait_for
from kit.ports import free_ports

Object = dict[str, Any]


class ControlPlane:
    """One API server with its etcd; the API server may be killed and started again."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self._address = address
        self._tools = {name: tool(name, kind="control-plane") for name in PROGRAMS}
        for program, package in (("etcd", "etcd-server"), ("openssl", "openssl")):
            if shutil.which(program) is None:
                skip(f"{program} is not installed; apt-get install {package}")
        self.directory = Path(tempfile.mkdtemp(prefix="downburst-control-plane."))
        self._etcd_port, self._peer_port, self.port, *self._other_ports = free_ports(5)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.ca_file = self.directory / "server.crt"
        self.kubeconfig = self.directory / "kubeconfig"
        self._make_keys()

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"https://{self._address}:{self.port}"

    def start(self) -> Self:
        """Starts everything, and waits until the controllers are at work."""
        here, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._peer_port}"
        self._run(
            "etcd",
            *("etcd", "--data-dir", f"{self.directory}/etcd", "--unsafe-no-fsync", "--name", "one"),
            *("--listen-client-urls", here, "--advertise-client-urls", here),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"one={peer}"),
        )
        self.start_server()
        self._start_controllers()
        self.wait_for_account("default")
        return self

    def start_server(self) -> None:
        """Starts the API server alone, and waits until it is ready."""
        key = f"{self.directory}/server.key"
        self._run(
            "server",
            self._tools["kube-apiserver"],
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            *(f"--secure-port={self.port}", f"--bind-address={self._address}", "--endpoint-reconciler-type=none"),
            "--kubelet-preferred-address-types=InternalIP",
            *("--service-cluster-ip-range=10.97.0.0/16", "--authorization-mode=RBAC"),
            *(f"--tls-cert-file={self.ca_file}", f"--tls-private-key-file={key}"),
            *(f"--token-auth-file={self.directory}/tokens.csv", f"--service-account-signing-key-file={key}"),
            *("--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={key}"),
        )
        wait_for("an API server that is ready", self._is_ready, 120)

    def kill_server(self) -> None:
        """`kill -9` of the API server; its data stays in etcd."""
        self._end("server")

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        body: Object | None = None,
        kind: str = "application/json",
        token: str = "admin",
    ) -> Any:
        """One request of the API, by default as the administrator; raises `HTTPError` for a refusal."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=20, context=self._tls()) as answer:
            return json.loads(answer.read())

    def change(self, path: str, part: Object) -> Object:
        """Merges a part into an object."""
        changed: Object = self.ask(path, method="PATCH", body=part, kind="application/merge-patch+json")
        return changed

    def tried(self, item: Object, namespace: str) -> Object:
        """The object as the server would make it, without storing it. Unlike `kubectl`, refuses unknown fields."""
        path = f"{self.place_of(item, namespace)}?dryRun=All&fieldValidation=Strict"
        made: Object = self.ask(path, method="POST", body=item)
        return made

    def place_of(self, item: Object, namespace: str) -> str:
        """The path of objects of this kind in a namespace."""
        group = item["apiVersion"]
        root = f"/apis/{group}" if "/" in group else f"/api/{group}"
        kinds = self.ask(root)["resources"]
        plural = next(kind["name"] for kind in kinds if kind["kind"] == item["kind"] and "/" not in kind["name"])
        return f"{root}/namespaces/{namespace}/{plural}"

    def wait_for_account(self, namespace: str) -> None:
        """Waits for the objects that controllers create in a namespace before pods are admitted to it."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        wait_for(f"the account of namespace {namespace}", lambda: self._has(path), 60)

    def remove(self) -> None:
        """Ends everything, and removes its files."""
        for name in ("scheduler", "manager", "server", "etcd"):
            self._end(name)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _start_controllers(self) -> None:
        files = [f"--{name}={self.kubeconfig}" for name in CONFIGURATIONS]
        for name, program, port in (
            ("manager", "kube-controller-manager", self._other_ports[0]),
            ("scheduler", "kube-scheduler", self._other_ports[1]),
        ):
            more = [f"--service-account-private-key-file={self.directory}/server.key"] if name == "manager" else []
            here = ("--leader-elect=false", "--bind-address=127.0.0.1", f"--secure-port={port}")
            self._run(name, self._tools[program], *files, *here, *more)

    def _is_ready(self) -> bool:
        process = self._processes["server"]
        assert process.poll() is None, (self.directory / "server.log").read_text()[-3000:]
        request = urllib.request.Request(f"{self.url}/readyz", headers={"Authorization": "Bearer admin"})
        with suppress(OSError), urllib.request.urlopen(request, timeout=5, context=self._tls()) as answer:
            return bool(answer.status == 200)
        return False

    def _has(self, path: str) -> bool:
        with suppress(OSError):
            return bool(self.ask(path))
        return False

    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca_file))

    def _run(self, name: str, *argv: str) -> None:
        with (self.directory / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def _end(self, name: str) -> None:
        if (process := self._processes.pop(name, None)) is not None:
            process.kill()
            process.wait(timeout=30)

    def _make_keys(self) -> None:
        argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
        argv += ["-addext", f"subjectAltName=IP:{self._address},DNS:localhost"]
        argv += ["-keyout", f"{self.directory}/server.key", "-out", str(self.ca_file)]
        subprocess.run(argv, check=True, capture_output=True, timeout=60)
        with (self.directory / "tokens.csv").open("w", newline="") as tokens:
            csv.writer(tokens).writerow(("admin", "admin", "admin", "system:masters"))
        cluster = {"server": self.url, "certificate-authority": str(self.ca_file)}
        written = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": "admin"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
            "current-context": "test",
        }
        self.kubeconfig.write_text(json.dumps(written))


@contextmanager
def control_plane(address: str = "127.0.0.1") -> Iterator[ControlPlane]:
    """A running control plane; the test is skipped where its programs were not built."""
    plane = ControlPlane(address)
    try:
        yield plane.start()
    finally:
        plane.remove()


PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
CONFIGURATIONS = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
