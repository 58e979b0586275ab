"""A Global Replay service and a Global Discovery Catalogue on loopback, which answer as WMO's reference does.

Both are OGC APIs of pygeoapi over Elasticsearch (READMEs of wmo-im/wis2-grep and wmo-im/wis2-gdc): features indented
for people, `numberMatched` and a link `next`, `datetime` with both ends, pages of `limit` from `offset`, and `q`: a
quoted begin of a topic there, words here.
"""

import json
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

REPLAY = "/collections/wis2-notification-messages/items"
CATALOGUE = "/collections/wis2-discovery-metadata/items"
Feature = dict[str, Any]


class Collection:
    """Features of one collection."""

    def __init__(self, path: str, fits: Callable[[Feature, str], bool], most_items: int = 10_000) -> None:
        self.path, self.fits, self.most_items = path, fits, most_items
        self.features: list[Feature] = []
        self.failures: list[int | bytes | str] = []
        """Before the features: statuses, bodies, or addresses to which it redirects."""
        self.asked: list[dict[str, str]] = []
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return "" if self._server is None else f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), self)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def answer(self, asked: Mapping[str, str]) -> bytes:
        """A page."""
        found = [one for one in self.features if self._is_asked(one, asked)]
        if "sortby" in asked:
            found.sort(key=lambda one: datetime.fromisoformat(one["properties"][asked["sortby"]]))
        offset, limit = int(asked.get("offset", 0)), min(int(asked.get("limit", 500)), self.most_items)
        page = found[offset : offset + limit]
        links = [{"rel": "self", "href": self.url + self.path}]
        if offset + limit < len(found):
            more = dict(asked) | {"offset": str(offset + limit)}
            links.append({"rel": "next", "href": f"{self.url}{self.path}?{urlencode(more)}"})
        document = {
            "type": "FeatureCollection",
            "features": page,
            "numberMatched": len(found),
            "numberReturned": len(page),
            "links": links,
        }
        return json.dumps(document, indent=4).encode()

    def _is_asked(self, feature: Feature, asked: Mapping[str, str]) -> bool:
        if "datetime" in asked:
            begin, end = map(datetime.fromisoformat, asked["datetime"].split("/"))
            if not begin <= datetime.fromisoformat(feature["properties"]["pubtime"]) <= end:
                return False
        return "q" not in asked or self.fits(feature, asked["q"])


def replay_service(most_items: int = 10_000) -> Collection:
    """A replay service without notifications."""

    def fits(feature: Feature, q: str) -> bool:
        topic: str = feature["properties"]["topic"]
        return f"{topic}/".startswith(f"{q.strip(chr(34))}/")

    return Collection(REPLAY, fits, most_items)


def keep_notification(service: Collection, topic: str, message: Mapping[str, Any]) -> None:
    """Has a replay service keep a notification, as it stores it: with the topic as a property more."""
    service.features.append({**message, "properties": {**message["properties"], "topic": topic}})


def catalogue() -> Collection:
    """A catalogue without records."""
    return Collection(CATALOGUE, lambda feature, q: q.lower() in json.dumps(feature).lower())


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 50

    def __init__(self, address: tuple[str, int], collection: Collection) -> None:
        super().__init__(address, _Answer)
        self.collection = collection


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        collection, parts = self.server.collection, urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        collection.asked.append(asked)
        failure = collection.failures.pop(0) if collection.failures else None
        if isinstance(failure, str):
            self._send(302, b"", failure)
        elif isinstance(failure, int):
            self._send(failure, b"<html>an error page</html>")
        elif failure is not None:
            self._send(200, failure)
        elif parts.path == collection.path:
            self._send(200, collection.answer(asked))
        else:
            self._one(parts.path.removeprefix(f"{collection.path}/"))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing: the tests look at the questions."""

    def _one(self, identifier: str) -> None:
        found = [one for one in self.server.collection.features if one["id"] == identifier.replace("%3A", ":")]
        self._send(200, json.dumps(found[0]).encode()) if found else self._send(404, b'{"code": "NotFound"}')

    def _send(self, status: int, body: bytes, location: str = "") -> None:
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Type", "application/geo+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
