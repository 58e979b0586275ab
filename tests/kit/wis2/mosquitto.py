"""A mosquitto of the tests' own, which may be killed and started again with its sessions."""

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from paho.mqtt.publish import multiple

from downburst.domain.ordering.providers import Certificate
from kit.capabilities import skip
from kit.patience import wait_for
from kit.ports import free_port


class Mosquitto:
    """One broker on loopback."""

    def __init__(
        self, *lines: str, queue: int = 2_000, passwords: dict[str, str] | None = None, rights: str = ""
    ) -> None:
        program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
        if program is None:
            skip("mosquitto is not installed (apt-get install mosquitto)")
        self._program = program
        self.directory = Path(tempfile.mkdtemp(prefix="downburst-mosquitto."))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        settings = (
            f"listener {self.port} 127.0.0.1",
            "set_tcp_nodelay true",
            f"max_queued_messages {queue}",
            "persistence true",
            "autosave_on_changes true",
            "autosave_interval 1",
            f"persistence_location {self.directory}/",
            *lines,
            *self._guarded(passwords, rights),
        )
        (self.directory / "m.conf").write_text("\n".join(settings) + "\n")
        # Started as root it goes on as its own user.
        self.directory.chmod(0o777)

    @property
    def url(self) -> str:
        """Its address."""
        return f"mqtt://127.0.0.1:{self.port}"

    def _guarded(self, passwords: dict[str, str] | None, rights: str) -> tuple[str, ...]:
        """The lines by which users have passwords, and rights to topics."""
        if passwords is None:
            return ("allow_anonymous true",)
        users, topics = self.directory / "passwords", self.directory / "rights"
        users.touch()
        for user, password in passwords.items():
            subprocess.run(["mosquitto_passwd", "-b", users, user, password], check=True, timeout=30)
        topics.write_text(rights)
        for path in (users, topics):
            path.chmod(0o644)
        return ("allow_anonymous false", f"password_file {users}", f"acl_file {topics}")

    def start(self) -> Self:
        """Starts it, and waits until it takes connections."""
        with (self.directory / "log").open("ab") as log:
            argv = [self._program, "-c", str(self.directory / "m.conf")]
            self._process = subprocess.Popen(argv, stdout=log, stderr=log)
        wait_for("a broker that takes connections", self._answers, 30)
        return self

    def stop(self) -> None:
        """Ends it in an orderly way."""
        self._end(kill=False)

    def kill(self) -> None:
        """`kill -9`."""
        self._end(kill=True)

    def lose_sessions(self) -> None:
        """`kill -9` and a start without what it had stored."""
        self.kill()
        (self.directory / "mosquitto.db").unlink(missing_ok=True)
        self.start()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def publish(self, topic: str, payloads: Iterable[bytes]) -> None:
        """Publishes messages of one line each at QoS 1, in their order."""
        argv = ["mosquitto_pub", "-h", "127.0.0.1", "-p", str(self.port), "-q", "1", "-t", topic, "-l"]
        text = b"".join(payload + b"\n" for payload in payloads)
        subprocess.run(argv, input=text, check=True, timeout=120, capture_output=True)

    def encrypted(self, files: Certificate) -> int:
        """Adds a port for TLS, before it starts; returns it. Started as root, it reads the files as its own user."""
        port = free_port()
        lines = [f"listener {port} 127.0.0.1"]
        for name, file in (("certfile", files.certificate), ("keyfile", files.key)):
            lines.append(f"{name} {shutil.copy(file, self.directory / f'{port}.{name}')}")
            (self.directory / f"{port}.{name}").chmod(0o644)
        self._more(*lines)
        return port

    def with_websockets(self) -> int:
        """Adds a port for WebSockets, before it starts; returns it."""
        port = free_port()
        self._more(f"listener {port} 127.0.0.1", "protocol websockets")
        return port

    def publish_all(
        self, messages: Sequence[tuple[str, bytes]], user: str | None = None, password: str | None = None
    ) -> None:
        """Publishes messages of several topics at QoS 1, in their order."""
        wanted: list[Any] = [{"topic": topic, "payload": payload, "qos": 1} for topic, payload in messages]
        if wanted:
            auth: Any = None if user is None else {"username": user, "password": password}
            multiple(wanted, "127.0.0.1", self.port, auth=auth)

    def _more(self, *lines: str) -> None:
        with (self.directory / "m.conf").open("a") as file:
            file.write("\n".join(lines) + "\n")

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=10):
            return True
        return False

    def _end(self, *, kill: bool) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill() if kill else self._process.terminate()
            self._process.wait(timeout=30)
