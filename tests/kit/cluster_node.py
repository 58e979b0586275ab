"""A node of a cluster: containerd, kubelet, kube-proxy and the cluster's names, on a host of a lab.

Network, mounts and processes are namespaces of its own, so that one signal ends every container, mount, rule and
interface, also when the test run itself is killed. The kubelet's settings of the machine's kernel go to files that
are mounted over the real ones.
"""

import hashlib
import io
import json
import os
import platform
import shutil
import signal
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from kit.capabilities import needs, skip
from kit.cluster_tools import tool
from kit.control_plane import ControlPlane, Object
from kit.namespaces import Lab, run_to_end
from kit.patience import wait_for


class ClusterNode:
    """One node. Its pods are on a bridge that carries multicast; other hosts reach pods and services through it."""

    def __init__(self, lab: Lab, host: str, plane: ControlPlane) -> None:
        self.name = host
        self.address = lab.address(host)
        self._lab, self._plane = lab, plane
        self._tools = {name: tool(name, kind="node") for name in ("kubelet", "kube-proxy", "coredns", "pause")}
        for program in ("containerd", "ctr", "runc", "conntrack", "iptables", "setpriv", "nsenter", "unshare"):
            if shutil.which(program) is None:
                skip(f"{program} is not installed; scripts/cluster-tools.sh node installs it")
        self.directory = Path(tempfile.mkdtemp(prefix="downburst-node."))
        self._groups = f"downburst-{self.directory.name.rpartition('.')[2]}"
        self._machine: subprocess.Popen[bytes] | None = None
        self._programs: list[subprocess.Popen[bytes]] = []
        self._init = 0

    def start(self, images: Path) -> Self:
        """Starts everything with the images of an archive, and waits until the node takes pods."""
        self._begin_machine()
        self._make_groups()
        self._write_configuration()
        socket = f"{self.directory}/containerd.sock"
        self._run("containerd", "containerd", "--config", f"{self.directory}/containerd.toml")
        wait_for("containerd", lambda: self._succeeds("ctr", "--address", socket, "version"), 60)
        pause = self.directory / "pause.tar"
        write_image(pause, PAUSE, Path(self._tools["pause"]))
        for archive in (pause, images):
            self._finish("ctr", "--address", socket, "--namespace", "k8s.io", "images", "import", str(archive))
        here = ("--kubeconfig", str(self._plane.kubeconfig), "--hostname-override", self.name)
        self._run(
            *("kubelet", self._tools["kubelet"], *here, "--config", f"{self.directory}/kubelet.json"),
            *("--root-dir", f"{self.directory}/kubelet", "--cert-dir", f"{self.directory}/keys"),
            *("--node-ip", self.address),
        )
        limits = ("--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0s")
        self._run(
            *("kube-proxy", self._tools["kube-proxy"], *here, "--proxy-mode=iptables", f"--cluster-cidr={PODS}"),
            *(*limits, "--conntrack-tcp-timeout-close-wait=0s"),
        )
        self._run("coredns", self._tools["coredns"], "-conf", f"{self.directory}/Corefile")
        wait_for("a node that takes pods", self._is_ready, 120)
        return self

    def volume(self, pod: Object, name: str) -> Path:
        """The path on this machine of an empty directory of a pod."""
        uid: str = pod["metadata"]["uid"]
        return self.directory / "kubelet/pods" / uid / "volumes/kubernetes.io~empty-dir" / name

    def persistent(self, name: str) -> None:
        """Makes a volume for the first claim that requests one, with its files on this machine."""
        place = self.directory / "volumes" / name
        place.mkdir(parents=True)
        place.chmod(0o777)
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": str(place)}}
        body = {"metadata": {"name": name}, "spec": spec}
        self._plane.ask("/api/v1/persistentvolumes", method="POST", body=body)

    def kill_containers(self, pod: Object) -> int:
        """`kill -9` of every process of the pod except the one that holds its network; returns their number."""
        killed = 0
        for pid in self._processes_of(pod):
            # The other processes of a container end with its first one.
            with suppress(FileNotFoundError, ProcessLookupError):
                if Path(f"/proc/{pid}/comm").read_text().strip() != "pause":
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
        return killed

    def logs(self) -> str:
        """The last lines of the logs of its programs and containers."""
        files = [*self.directory.glob("*.log"), *self.directory.glob("logs/pods/**/*.log")]
        return "\n".join(f"── {file}\n{file.read_text(errors='replace')[-3000:]}" for file in sorted(files))

    def remove(self) -> None:
        """Ends everything, and removes its files."""
        if self._machine is not None:
            self._machine.kill()
            self._machine.wait(timeout=30)
        for program in self._programs:
            program.wait(timeout=30)
        wait_for("the end of a node's processes", self._remove_groups, 60)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _begin_machine(self) -> None:
        network = f"--net=/run/netns/{self._lab.namespace(self.name)}"
        apart = ("unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc")
        argv = ["setpriv", "--pdeathsig", "KILL", "nsenter", network, *apart, "bash", "-euc", MACHINE, "machine"]
        argv += [str(self.directory), PODS_HERE.format(gateway=1)]
        with (self.directory / "machine.log").open("ab") as log:
            self._machine = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for("the machine of a node", self._has_begun, 30)
        children = Path(f"/proc/{self._machine.pid}/task/{self._machine.pid}/children")
        self._init = int(children.read_text().split()[0])

    def _has_begun(self) -> bool:
        assert self._machine is not None
        assert self._machine.poll() is None, (self.directory / "machine.log").read_text()
        return (self.directory / "begun").exists()

    def _write_configuration(self) -> None:
        """Writes the configuration of each program."""
        written = {
            "containerd.toml": CONTAINERD.format(directory=self.directory, pause=PAUSE),
            "network/10-pods.conflist": json.dumps(self._pod_network()),
            "kubelet.json": json.dumps(KUBELET | self._kubelet()),
            "Corefile": COREFILE.format(address=self.address, kubeconfig=self._plane.kubeconfig),
        }
        for name, text in written.items():
            (self.directory / name).parent.mkdir(exist_ok=True)
            (self.directory / name).write_text(text)

    def _pod_network(self) -> Object:
        addresses = {
            "type": "host-local",
            "dataDir": f"{self.directory}/addresses",
            "ranges": [[{"subnet": PODS_HERE.format(gateway=0)}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        }
        bridge = {"type": "bridge", "bridge": "pods", "isGateway": True, "ipMasq": True, "hairpinMode": True}
        return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge | {"ipam": addresses}]}

    def _kubelet(self) -> Object:
        return {
            "containerRuntimeEndpoint": f"unix://{self.directory}/containerd.sock",
            "cgroupRoot": f"/{self._groups}",
            "clusterDNS": [self.address],
            "podLogsDir": f"{self.directory}/logs/pods",
            "volumePluginDir": f"{self.directory}/plugins",
        }

    def _is_ready(self) -> bool:
        with suppress(OSError):
            status = self._plane.ask(f"/api/v1/nodes/{self.name}")
            ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status["status"]["conditions"])
            return ready and not status["spec"].get("taints")
        return False

    def _run(self, name: str, *argv: str) -> None:
        with (self.directory / f"{name}.log").open("ab") as log:
            program = subprocess.Popen(self._inside(argv), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._programs.append(program)

    def _finish(self, *argv: str) -> str:
        return run_to_end(self._inside(argv), timeout_s=300)

    def _succeeds(self, *argv: str) -> bool:
        return subprocess.run(self._inside(argv), capture_output=True, check=False, timeout=60).returncode == 0

    def _inside(self, argv: tuple[str, ...]) -> list[str]:
        return ["nsenter", f"--target={self._init}", "--mount", "--pid", "--net", *argv]

    def _make_groups(self) -> None:
        for tree in _group_trees():
            folder = tree / self._groups
            folder.mkdir()
            for name in ("cpuset.cpus", "cpuset.mems"):
                # A new control group of version 1 has no processors until they are assigned.
                if (tree / name).exists() and not (tree / "cgroup.controllers").exists():
                    (folder / name).write_text((tree / name).read_text())

    def _processes_of(self, pod: Object) -> list[int]:
        pattern = f"**/pod{pod['metadata']['uid']}/*/cgroup.procs"
        groups = [group for tree in _group_trees() for group in (tree / self._groups).glob(pattern)]
        return sorted({int(pid) for group in groups for pid in group.read_text().split()})

    def _remove_groups(self) -> bool:
        for tree in _group_trees():
            for folder, _, _ in os.walk(tree / self._groups, topdown=False):
                with suppress(OSError):
                    Path(folder).rmdir()
        return not any((tree / self._groups).exists() for tree in _group_trees())


@contextmanager
def cluster_node(lab: Lab, host: str, plane: ControlPlane, images: Path) -> Iterator[ClusterNode]:
    """A running node; the test is skipped where its programs were not built. Other hosts get a route to its pods."""
    needs("netns")
    node = ClusterNode(lab, host, plane)
    try:
        node.start(images)
        for other in lab.hosts:
            if other != host:
                for network in (PODS, SERVICES):
                    run_to_end(["ip", "-n", lab.namespace(other), "route", "add", network, "via", node.address])
        yield node
    finally:
        node.remove()


def write_image(archive: Path, name: str, program: Path) -> None:
    """An image of one program that needs no files, as Docker would save it."""
    layer = _tar({program.name: program.read_bytes()})
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    configuration = json.dumps(
        {
            "architecture": machine,
            "os": "linux",
            "config": {"Entrypoint": [f"/{program.name}"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        }
    ).encode()
    manifest = [{"Config": "configuration.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    files = {"layer.tar": layer, "configuration.json": configuration, "manifest.json": json.dumps(manifest).encode()}
    archive.write_bytes(_tar(files))


def _tar(files: dict[str, bytes]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    return written.getvalue()


def _group_trees() -> list[Path]:
    """Roots of the control groups: one for each controller in version 1, otherwise a single one."""
    root = Path("/sys/fs/cgroup")
    if (root / "cgroup.controllers").exists():
        return [root]
    return [path for path in root.iterdir() if path.is_dir() and not path.is_symlink() and path.name != "unified"]


PODS = "10.98.0.0/16"
PODS_HERE = "10.98.1.{gateway}/24"
SERVICES = "10.97.0.0/16"
PAUSE = "downburst.invalid/pause:1"

# $1 is the node's directory, $2 the address of the pods' bridge. The first process reaps orphans.
MACHINE = """\
cd "$1"
mount -t tmpfs tmpfs /run
mkdir -p logs kernel /var/lib/cni
mount --bind logs /var/log
mount -t tmpfs tmpfs /var/lib/cni
for name in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops \
    kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
    cat "/proc/sys/$name" >"kernel/${name//\\//-}"
    mount --bind "kernel/${name//\\//-}" "/proc/sys/$name"
done
echo 1 >/proc/sys/net/ipv4/ip_forward
ip link add pods type bridge
ip address add "$2" dev pods
ip link set pods up
touch begun
while :; do
    sleep 3600 &
    wait "$!"
done
"""

# A process without CAP_SYS_RESOURCE cannot set an oom_score_adj below its own.
CONTAINERD = """\
version = 2
root = "{directory}/containerd/root"
state = "{directory}/containerd/state"
[grpc]
  address = "{directory}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{directory}/network"
"""

# Only hosts on the lab's network reach the kubelet.
KUBELET: dict[str, Any] = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "cgroupDriver": "cgroupfs",
    "failCgroupV1": False,
    "failSwapOn": False,
    "clusterDomain": "cluster.local",
    "resolvConf": "",
    "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    "imageGCHighThresholdPercent": 100,
}

COREFILE = """\
cluster.local {{
    errors
    kubernetes {{
        kubeconfig {kubeconfig} test
        ttl 2
    }}
}}
"""
