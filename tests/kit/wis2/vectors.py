"""Notifications that a source has to take, and others that it has to refuse: own vectors, one centre for each.

The rules behind them: the standard of notifications (WNM), the guide to WIS2 (1.2.3, 2.7.4.2) and the tests for
Global Services. Each has a centre-id of its own, so that the hub's accounts of centres tell them apart.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kit.wis2.announced import announcement

Message = dict[str, Any]
OURS = "us-unidata-test"
"""The centre that the hub of the tests publishes for."""
CONTENT = b"AAXX 23041 10381 41598 63302 10045 20021 30123 40155="
OTHER = CONTENT.replace(b"10045", b"10046")
LONGER = CONTENT + b"more"
DENIED = "/denied"
"""A path at which its server answers with status 403."""
FTP = "ftp://files.example/1"


@dataclass(frozen=True, slots=True)
class Vector:
    """A notification, with those that come before it, and its fate."""

    name: str
    message: Message
    expected: str
    """`stored`, `copy`, `failed`, or the verdict of a message that is passed over."""
    reason: str = ""
    """Part of the sentence about it."""
    before: Sequence[Message] = ()
    """Published and at their end before it."""
    contents: Sequence[bytes] = ()
    """All that the site has of its data id in the end."""
    topic: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    """What its server has, by path."""
    payload: bytes = b""
    """In place of the message."""

    @property
    def centre(self) -> str:
        """Its centre-id."""
        return self.topic.split("/")[3]

    @property
    def sent(self) -> bytes:
        """The message of the broker."""
        return self.payload or json.dumps(self.message).encode()


class Vectors:
    """Makes vectors whose files are at a server."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._made: list[Vector] = []

    def quick(self) -> list[Vector]:
        """All whose end does not wait for several attempts at a download."""
        self._made = []
        self._links()
        self._within()
        self._departures()
        self._refused()
        self._again()
        self._topics()
        return self._made

    def slow(self) -> list[Vector]:
        """Those of which each attempt at a download fails."""
        self._made = []
        self._add("wrong digest by URL", "failed", "digest", served=OTHER)
        self._add("wrong length by URL", "failed", "bytes", served=LONGER)
        content = {"encoding": "utf-8", "value": OTHER.decode(), "size": len(OTHER)}
        self._add("wrong digest inline and by URL", "failed", "digest", served=OTHER, content=content)
        return self._made

    def _links(self) -> None:
        self._stored("link, sha512")
        for method in ("sha256", "sha384", "sha3-256", "sha3-384", "sha3-512"):
            self._stored(f"link, {method}", integrity=_integrity(method))
        self._stored("hex digest", integrity={"method": "sha512", "value": hashlib.sha512(CONTENT).hexdigest()})
        self._stored("no integrity", without=("integrity",))
        self._stored("no length", change=lambda one: one["links"][0].pop("length"))

    def _within(self) -> None:
        text, packed = CONTENT.decode(), gzip.compress(CONTENT, mtime=0)
        self._inline("utf-8", "utf-8", text)
        self._inline("base64", "base64", base64.b64encode(CONTENT).decode())
        self._inline("gzip", "gzip", base64.b64encode(packed).decode())
        self._inline("wrong size, good URL", "utf-8", text, size=len(CONTENT) + 1, served=CONTENT)
        self._inline("wrong digest inline, good URL", "utf-8", OTHER.decode(), served=CONTENT)
        self._inline("broken base64, good URL", "base64", "====", served=CONTENT)

    def _departures(self) -> None:
        """Faults of publishers that readers take."""
        self._stored("ns pubtime", pubtime="2026-11-23T04:00:00.123456789Z")
        self._stored("datetime without Z", datetime="2026-11-23T04:00:00")
        point = {"type": "Point", "coordinates": "10.0,50.0"}
        self._stored("string coordinates", change=lambda one: one.update(geometry=point))
        self._stored("version v04", change=_as_v04)
        self._stored("cache=false", cache=False)

    def _refused(self) -> None:
        self._add("8,193 bytes", "refused", "has 8193 bytes", change=_padded)
        self._add("two canonicals", "refused", "has 2 links", change=lambda one: one["links"].append(one["links"][0]))
        self._add(
            "no link that counts", "refused", "has 0 links", change=lambda one: one["links"][0].update(rel="via")
        )
        self._add("id is no UUID", "refused", "no UUID", change=lambda one: one.update(id="1"))
        self._add("pubtime is no time", "refused", "pubtime", pubtime="yesterday")
        self._add("digest of another length", "refused", "digest", integrity={"method": "sha512", "value": "YWJj"})
        self._add("unknown method", "refused", "method", integrity={"method": "md5", "value": "YWJj"})
        self._add("link by ftp", "refused", "no address of HTTP", change=lambda one: one["links"][0].update(href=FTP))
        broken = b'{"type": "Feature", "id": '
        self._add("no JSON", "refused", "no JSON", change=lambda _one: None, payload=broken)

    def _again(self) -> None:
        """Further notifications of a known data id."""
        later = "2026-11-23T05:00:00Z"
        self._second("duplicate by id", "copy")
        self._second("duplicate by data id, other id and pubtime", "copy", new_id=True, pubtime=later)
        self._second("other bytes, no update", "repeat", "no update", new_id=True, content=OTHER, pubtime=later)
        self._second("update", "stored", new_id=True, content=OTHER, rel="update", pubtime=later)
        earlier = "2026-11-23T03:00:00Z"
        self._second("older update", "older", "newer", new_id=True, content=OTHER, rel="update", pubtime=earlier)
        self._second("same again after a failure", "stored", new_id=True, first_at=DENIED)
        self._second("deletion", "delete", "withdraws", new_id=True, rel="deletion", pubtime=later)

    def _topics(self) -> None:
        self._stored("unknown centre", topic="cache/a/wis2/zz-nowhere/data/core/weather")
        self._stored("gateway topic", topic="cache/a/wis2/de-dwd-gts-to-wis2/data/core/S/M/V/X/01/TJSJ")
        recommended = "origin/a/wis2/xx-recommended/data/recommended/weather"
        self._add("recommended", "refused", "recommended data", topic=recommended)
        self._add("metadata", "refused", "no topic of data", topic="origin/a/wis2/xx-metadata/metadata")
        ours = f"cache/a/wis2/{OURS}/data/core/weather/surface-based-observations/synop"
        self._add("own centre", "refused", "come round", topic=ours)

    # One vector each.

    def _stored(self, name: str, **more: Any) -> None:
        self._add(name, "stored", "", stored=(CONTENT,), **more)

    def _inline(self, name: str, encoding: str, value: str, *, size: int = len(CONTENT), served: bytes = b"") -> None:
        """Without `served` its server has no file: bytes within a notification need none."""
        content = {"encoding": encoding, "value": value, "size": size}
        self._stored(name, served=served, content=content)

    def _second(
        self,
        name: str,
        expected: str,
        reason: str = "",
        *,
        new_id: bool = False,
        content: bytes = CONTENT,
        rel: str = "canonical",
        first_at: str = "",
        pubtime: str = "",
    ) -> None:
        number = len(self._made) + 1
        path, topic = f"/{number}", _topic(number)
        first, second = self._message(first_at or path, topic, CONTENT), self._message(f"{path}-2", topic, content)
        if pubtime:
            second["properties"]["pubtime"] = pubtime
        second["links"][0]["rel"] = rel
        if new_id:
            second["id"] = announcement(number + 500, "", b"")["id"]
        stored = [content] if expected == "stored" else []
        if not first_at:
            stored.append(CONTENT)
        files = {path: CONTENT, f"{path}-2": content}
        self._made.append(Vector(name, second, expected, reason, (first,), stored, topic, files))

    def _add(
        self,
        name: str,
        expected: str,
        reason: str,
        *,
        change: Callable[[Message], object] = lambda _one: None,
        without: Sequence[str] = (),
        stored: Sequence[bytes] = (),
        served: bytes = b"",
        topic: str = "",
        payload: bytes = b"",
        **properties: Any,
    ) -> None:
        number = len(self._made) + 1
        path, topic = f"/{name.replace(' ', '-')}", topic or _topic(number)
        message = self._message(path, topic, CONTENT)
        message["properties"] |= properties
        for member in without:
            del message["properties"][member]
        change(message)
        has_file = served or ("content" not in properties and CONTENT)
        files = {path: has_file} if has_file else {}
        self._made.append(Vector(name, message, expected, reason, (), stored, topic, files, payload))

    def _message(self, path: str, topic: str, content: bytes) -> Message:
        centre = topic.split("/")[3]
        found = announcement(len(self._made) + 1, f"{self._server}{path}", content)
        found["properties"] |= {"data_id": f"{centre}/synop/1", "metadata_id": f"urn:wmo:md:{centre}:synop"}
        return found


def _topic(number: int) -> str:
    return f"cache/a/wis2/xx-vector{number:02}/data/core/weather/surface-based-observations/synop"


def _integrity(method: str) -> dict[str, str]:
    digest = hashlib.new(method.replace("-", "_"), CONTENT).digest()
    return {"method": method, "value": base64.b64encode(digest).decode()}


def _as_v04(message: Message) -> None:
    del message["conformsTo"]
    message["version"] = "v04"


def _padded(message: Message) -> None:
    message["properties"]["comment"] = ""
    message["properties"]["comment"] = "x" * (8_193 - len(json.dumps(message)))
