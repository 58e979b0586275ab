"""A Debian of the tests' own: a root directory in namespaces, booted by its own systemd, without network."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from kit.capabilities import needs, skip
from kit.cluster_tools import CACHE
from kit.patience import wait_for

Done = subprocess.CompletedProcess[str]


class Debian:
    """One installation, which ends with its first process: nothing of it outlives `remove`."""

    def __init__(self) -> None:
        archive = _archive()
        self.root = Path(tempfile.mkdtemp(prefix="downburst-debian."))
        self._group = GROUPS / self.root.name
        self._log = self.root.with_suffix(f"{self.root.suffix}.log")
        self._process: subprocess.Popen[bytes] | None = None
        _checked("tar", "--extract", "--numeric-owner", "--file", str(archive), "--directory", str(self.root))

    def start(self) -> Self:
        """Boots it, and waits until systemd has started its units."""
        self._group.mkdir()
        with self._log.open("ab") as log:
            argv = ["sh", "-euc", SHELL, "sh", str(self._group), BOOT, str(self.root)]
            self._process = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        wait_for("a Debian that has booted", self._has_booted, 120)
        return self

    def run(self, *argv: str, user: str = "root", code: int | None = 0) -> Done:
        """Runs a command inside; its code must be this one (`None`: any)."""
        as_user = [] if user == "root" else ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]
        argv = (*self._inside(), "env", "-i", *ENVIRONMENT, *as_user, *argv)
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=600, cwd="/")
        if code is not None and done.returncode != code:
            raise AssertionError(f"{argv} ended with {done.returncode}:\n{done.stdout}{done.stderr}{self.told()}")
        return done

    def told(self) -> str:
        """The end of its journal."""
        argv = [
            "nsenter",
            "--target",
            str(self._first()),
            "--all",
            "--root",
            "--wd",
            "journalctl",
            "--no-pager",
            "-n60",
        ]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, cwd="/").stdout

    def remove(self) -> None:
        """Ends it, and removes its files."""
        if self._process is not None:
            # All processes of a namespace end with its first one.
            with suppress(ProcessLookupError, IndexError):
                os.kill(self._first(), 9)
            self._process.wait(timeout=60)
        for group in sorted(self._group.rglob("*/"), reverse=True):
            group.rmdir()
        if self._group.exists():
            self._group.rmdir()
        shutil.rmtree(self.root, ignore_errors=True)
        self._log.unlink(missing_ok=True)

    def _inside(self) -> list[str]:
        return ["nsenter", "--target", str(self._first()), "--all", "--root", "--wd"]

    def _first(self) -> int:
        assert self._process is not None
        pid = self._process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def _has_booted(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()[-3000:]
        try:
            state = self.run("systemctl", "is-system-running", code=None).stdout.strip()
        except IndexError:
            return False
        return state in ("running", "degraded")


@contextmanager
def debian() -> Iterator[Debian]:
    """A running Debian; the test is skipped where none can be created."""
    needs("root", "netns")
    if not GROUPS.is_dir():
        skip(f"systemd's own groups of processes are not at {GROUPS}")
    installation = Debian()
    try:
        yield installation.start()
    finally:
        installation.remove()


def _archive() -> Path:
    """Debian's packages as one file, made once and kept outside of the repository."""
    if os.uname().machine != "x86_64" or shutil.which("mmdebstrap") is None:
        skip("mmdebstrap is not installed; apt-get install mmdebstrap")
    made = CACHE / "debian-systemd.tar"
    if not made.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        part = made.with_suffix(".part.tar")
        documents = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale")]
        _checked("mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", *documents, "bookworm", str(part))
        part.rename(made)
    return made


def _checked(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, f"{argv}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


GROUPS = Path("/sys/fs/cgroup/systemd")
PACKAGES = "systemd,systemd-sysv,python3,libssl3,ca-certificates,passwd,procps"
ENVIRONMENT = ("PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "XDG_RUNTIME_DIR=/run/downburst")

# The shell enters a control group of its own before it leaves the namespace of the others.
SHELL = """
echo $$ >"$1/cgroup.procs"
exec unshare --mount --pid --fork --kill-child --net --uts --ipc --cgroup sh -euc "$2" sh "$3"
"""
# A container manager's preparations for systemd: proc, sys, a few devices, and systemd's own control groups. State
# outside the namespaces, such as kernel settings and the control groups of others, is read-only.
BOOT = """
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
mkdir sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
mount -o remount,ro sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do
    : >"dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
hostname debian
pivot_root . mnt
umount --lazy /mnt
exec env -i container=downburst PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=console
"""
