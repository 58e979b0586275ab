"""A PostgreSQL of the tests' own: a server in a temporary directory, which may be killed and started again."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Self

import psycopg

from kit.capabilities import skip
from kit.patience import wait_for
from kit.ports import free_port


class Postgres:
    """One server. It is as durable as its process: its writes survive a kill, not a power cut."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.host = host
        self._bin = _binaries()
        self._user: dict[str, Any] = _unprivileged()
        self._names = count(1)
        self.directory = Path(tempfile.mkdtemp(prefix="downburst-postgres."))
        self.port = free_port()
        self.log = self.directory / "log"
        self._process: subprocess.Popen[bytes] | None = None
        if self._user:
            shutil.chown(self.directory, self._user["user"], self._user["group"])
        secret = self.directory / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        options = ["-U", ROLE, "--auth=scram-sha-256", f"--pwfile={secret}", "-E", "UTF8", "--no-locale", "-N"]
        self._run("initdb", "-D", str(self._data), *options)
        with (self._data / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all {ROLE} all scram-sha-256\n")

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def start(self) -> Self:
        """Starts the server and waits until it accepts connections; remains of a killed one may delay the start."""
        wait_for("a PostgreSQL that takes connections", self._comes_up, 60)
        return self

    def kill(self) -> None:
        """`kill -9` of the server; its children notice and end."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(timeout=30)

    def stop(self) -> None:
        """Ends the server without waiting for its clients."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(timeout=30)

    def remove(self) -> None:
        """Ends the server, and removes its files."""
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def database(self, template: str = "template1") -> str:
        """Creates a database; returns its name."""
        name = f"ledger_{next(self._names)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def drop(self, database: str) -> None:
        """Removes a database, even while it is in use."""
        self.execute(f"DROP DATABASE {database} WITH (FORCE)")

    def url(self, database: str, *, password: str | None = None, port: int | None = None) -> str:
        """The address of a database, for a hub."""
        return f"postgresql://{ROLE}:{password or PASSWORD}@{self.host}:{port or self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Runs one statement; returns its rows, if any."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def _comes_up(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            with self.log.open("ab") as log:
                argv = [self._bin / "postgres", "-D", self._data, *SETTINGS, "-c", f"port={self.port}"]
                argv += ["-c", f"listen_addresses={self.host}", "-c", f"unix_socket_directories={self.directory}"]
                self._process = subprocess.Popen(argv, stdout=log, stderr=log, **self._user)
        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._bin / program, *arguments], capture_output=True, text=True, check=False, timeout=120, **self._user
        )
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def postgres(host: str = "127.0.0.1") -> Iterator[Postgres]:
    """A running server; the test is skipped where none is installed."""
    if _binaries() is None:
        skip("no PostgreSQL server is installed; apt-get install postgresql")
    server = Postgres(host)
    try:
        yield server.start()
    finally:
        server.remove()


def _binaries() -> Any:
    places = [found.parent for found in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    on_path = shutil.which("postgres")
    if on_path:
        places.append(Path(on_path).resolve().parent)
    return max(places, key=str, default=None)


def _unprivileged() -> dict[str, Any]:
    """The server refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    known = {user.pw_name: user for user in pwd.getpwall()}
    found = known.get("postgres") or known["nobody"]
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}


ROLE, PASSWORD = "downburst", "test-only"
SETTINGS = [
    part
    for setting in (
        "fsync=off",
        "shared_buffers=32MB",
        "max_connections=60",
        "timezone=UTC",
        "lc_messages=C",
    )
    for part in ("-c", setting)
]
