"""What all contenders are given: announced files at a web server, and a broker with their notifications."""

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kit.capabilities import skip
from kit.patience import wait_for
from kit.ports import free_port
from kit.wis2.announced import TOPIC, announcement
from kit.wis2.mosquitto import Mosquitto


@dataclass(frozen=True)
class Scene:
    """A broker, and notifications that are not published yet."""

    broker: Mosquitto
    payloads: Sequence[bytes]

    def is_bound(self) -> bool:
        """True once a contender is subscribed."""
        return b" 1 cache/" in (self.broker.directory / "log").read_bytes()

    def publish(self) -> None:
        """Publishes all of them as fast as the broker takes them; returns once it has them."""
        self.broker.publish(TOPIC, self.payloads)


@contextmanager
def announced(directory: Path, files: int, size_bytes: int) -> Iterator[Scene]:
    """Files of random bytes with their notifications. Neither server drops anything, nor counts as a contender."""
    directory.mkdir(parents=True)
    with (
        web_server(directory / "web") as url,
        Mosquitto("log_type subscribe", "persistence false", queue=0) as broker,
    ):
        payloads = []
        for number in range(files):
            content = os.urandom(size_bytes)
            (directory / "web" / f"{number}.bin").write_bytes(content)
            payloads.append(json.dumps(announcement(number, f"{url}/{number}.bin", content)).encode())
        yield Scene(broker, payloads)


@contextmanager
def web_server(root: Path) -> Iterator[str]:
    """The address of an nginx that serves this directory, which it makes."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        skip("nginx is not installed (apt-get install nginx)")
    root.mkdir()
    port, settings = free_port(), root.with_suffix(".conf")
    settings.write_text(NGINX.format(port=port, root=root, state=root.parent))
    with (root.parent / "nginx.log").open("ab") as log:
        process = subprocess.Popen([program, "-c", str(settings), "-p", str(root.parent)], stdout=log, stderr=log)
    try:
        wait_for("an nginx that takes connections", lambda: _accepts(port))
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def _accepts(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10):
        return True
    return False


NGINX = """\
daemon off;
user root;
worker_processes 1;
pid {state}/nginx.pid;
error_log {state}/nginx.log;
events {{ worker_connections 256; }}
http {{
    access_log off;
    keepalive_requests 1000000;
    client_body_temp_path {state}/body;
    server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
"""
