"""A server of announced files on loopback, which may fail as servers of others do."""

import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


class FileServer:
    """Serves bytes by path; `failures` has, by path, the answers that come before the file."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.failures: dict[str, list[int | str]] = {}
        """Statuses, or addresses to which it redirects."""
        self.wants: dict[str, str] = {}
        """By path, the header `Authorization` without which it answers with status 401."""
        self.authorizations: list[str] = []
        """The headers that came."""
        self.asked: Counter[str] = Counter()
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=30)

    def begin(self, path: str) -> int | str | None:
        """Counts a request; returns its failure."""
        with self._lock:
            self.asked[path] += 1
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            waiting = self.failures.get(path)
            return waiting.pop(0) if waiting else None

    def end(self) -> None:
        """Ends a request."""
        with self._lock:
            self._at_once -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 200

    def __init__(self, address: tuple[str, int], files: FileServer) -> None:
        super().__init__(address, _Answer)
        self.files = files


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        files = self.server.files
        failure = files.begin(self.path)
        given = self.headers.get("Authorization")
        files.authorizations += [] if given is None else [given]
        if files.wants.get(self.path, given) != given:
            failure = 401
        try:
            self._answer(files.files.get(self.path), failure)
        finally:
            files.end()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing: the tests look at the counts."""

    def _answer(self, content: bytes | None, failure: int | str | None) -> None:
        if isinstance(failure, str):
            self.send_response(302)
            self.send_header("Location", failure)
            content = b""
        else:
            self.send_response(failure or (200 if content is not None else 404))
        body = b"<html>an error page</html>" if failure or content is None else content
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
