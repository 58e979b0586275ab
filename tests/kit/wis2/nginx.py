"""An nginx of the tests' own: TLS before a broker's WebSocket and before files, as at a WIS2 node."""

import os
import shutil
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from downburst.domain.ordering.providers import Certificate
from kit.capabilities import skip
from kit.patience import wait_for
from kit.ports import free_port


class Nginx:
    """Serves files at `/`, and a broker's WebSocket at `/mqtt`, on one port."""

    def __init__(self, directory: Path, files: Certificate, websocket_port: int) -> None:
        program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        if program is None:
            skip("nginx is not installed (apt-get install nginx-light)")
        self.port = free_port()
        self.root = directory / "files"
        self.root.mkdir(parents=True)
        self._log = directory / "log"
        self._argv = [program, "-p", str(directory), "-e", str(self._log), "-c", str(directory / "nginx.conf")]
        text = CONFIGURATION.format(
            user="user root;" if os.geteuid() == 0 else "",
            directory=directory,
            port=self.port,
            certificate=files.certificate,
            key=files.key,
            websocket_port=websocket_port,
        )
        (directory / "nginx.conf").write_text(text)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._argv, stdout=log, stderr=log)
        wait_for("an nginx that takes connections", self._answers, 30)
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=30)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=10):
            return True
        return False


CONFIGURATION = """{user}
daemon off;
pid {directory}/pid;
error_log {directory}/log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {directory}/bodies;
    proxy_temp_path {directory}/proxied;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        root {directory}/files;
        location /mqtt {{
            proxy_pass http://127.0.0.1:{websocket_port};
            proxy_http_version 1.1;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection "upgrade";
            proxy_read_timeout 1h;
        }}
    }}
}}
"""
