"""Downloads in groups: each product has one end, whatever becomes of the others."""

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from downburst.domain.bridges import Broker, FetchEnd, Last, Notice, State, WantedProduct, Wis2Source
from downburst.domain.bridges.fetching import GROUP_PRODUCTS
from downburst.domain.products import Acknowledgement, Product
from downburst.foundation.errors import BadInput, DigestMismatch, DiskFull, DownburstError, NodeAway, NotFetched
from downburst.supervision import FAULTS
from downburst_bridges.fetcher import Fetcher
from factories import SOME_TIME
from unit.bridges.test_intake import TOPIC, message

SOURCE = Wis2Source("dwd", "WIS2", (Broker("mqtt://127.0.0.1:1"),), ("cache/a/wis2/#",))
Ended = Callable[[Sequence[FetchEnd]], None]


@dataclass
class Node:
    """Ends each product, and refuses some of them, or groups that hold them."""

    refusals: dict[str, DownburstError] = field(default_factory=dict)
    group_errors: dict[str, Exception] = field(default_factory=dict)
    without_end: set[str] = field(default_factory=set)
    groups: list[list[str]] = field(default_factory=list)

    async def fetch(self, wanted: Sequence[WantedProduct], ended: Ended) -> None:
        names = [one.product.product_id for one in wanted]
        self.groups.append(names)
        for place, name in reversed(list(enumerate(names))):
            if error := self.group_errors.get(name):
                raise error
            if name not in self.without_end:
                refusal = self.refusals.get(name)
                ended([FetchEnd(place, None if refusal else place + 1, 0 if refusal else 7, refusal)])
        # Of a place that is none, and of one that has ended.
        ended([FetchEnd(len(names), 1), FetchEnd(0, 1)] if names[0] not in self.without_end else [])

    async def ingest(self, path: Path, product: Product, *, remove: bool = True) -> Acknowledgement:
        content = await asyncio.to_thread(path.read_bytes)
        if error := self.refusals.get(product.product_id):
            raise error
        return Acknowledgement(len(content), "", duplicate_of=9)


def notice(number: int, payload: bytes | None = None) -> Notice:
    data_id = f"de-dwd/synop/{number}"
    payload = json.dumps(message(number, of=number)).encode() if payload is None else payload
    last = Last(f"{number}", (data_id, ""), SOME_TIME, State.COMING)
    return Notice("dwd", data_id, last, TOPIC, payload, SOME_TIME, "de-dwd")


def notices(numbers: Iterable[int]) -> list[Notice]:
    return [notice(number) for number in numbers]


async def ends_of(node: Node, wanted: Sequence[Notice], spool: Path) -> dict[str, FetchEnd]:
    """The end of each product, by data id."""
    ends, all_of_them = dict[str, FetchEnd](), asyncio.Event()

    def ended(one: Notice, end: FetchEnd) -> None:
        assert one.data_id not in ends, "each product ends once"
        ends[one.data_id] = end
        if len(ends) == len(wanted):
            all_of_them.set()

    Fetcher(SOURCE, node, spool, ended).begin(wanted)
    async with asyncio.timeout(20):
        await all_of_them.wait()
    return ends


async def test_products_go_to_the_node_in_bounded_groups_and_each_ends_once(tmp_path: Path) -> None:
    node = Node()
    ends = await ends_of(node, notices(range(GROUP_PRODUCTS + 6)), tmp_path)
    assert [len(group) for group in node.groups] == [GROUP_PRODUCTS, 6]
    assert ends["de-dwd/synop/1"] == FetchEnd(1, 2, 7)
    assert ends[f"de-dwd/synop/{GROUP_PRODUCTS}"] == FetchEnd(0, 1, 7)


@pytest.mark.parametrize("refusal", [NotFetched("404"), DigestMismatch("other bytes"), DiskFull("full")])
async def test_a_refused_product_hurts_no_other_of_its_group(refusal: DownburstError, tmp_path: Path) -> None:
    node = Node(refusals={"de-dwd/synop/1": refusal})
    ends = await ends_of(node, notices(range(3)), tmp_path)
    assert [end.refusal for _, end in sorted(ends.items())] == [None, refusal, None]
    assert len(node.groups) == 1


@pytest.mark.parametrize("error", [BadInput("a value"), ValueError("a case that was forgotten")])
async def test_what_may_be_one_products_fault_has_the_rest_of_its_group_fetched_singly(
    error: Exception, tmp_path: Path
) -> None:
    node = Node(group_errors={"de-dwd/synop/1": error})
    ends = await ends_of(node, notices(range(4)), tmp_path)
    assert [name for name, end in sorted(ends.items()) if end.refusal is not None] == ["de-dwd/synop/1"]
    assert sorted(map(len, node.groups)) == [1, 1, 4]


async def test_a_node_that_is_away_is_not_asked_for_each_of_them(tmp_path: Path) -> None:
    away = NodeAway("the node is not running")
    node = Node(group_errors={"de-dwd/synop/1": away})
    ends = await ends_of(node, notices(range(4)), tmp_path)
    assert [end.refusal for _, end in sorted(ends.items())] == [away, away, None, None]
    assert len(node.groups) == 1


async def test_a_product_that_the_node_leaves_without_an_end_fails_after_a_second_try(tmp_path: Path) -> None:
    node = Node(without_end={"de-dwd/synop/0"})
    ends = await ends_of(node, notices(range(2)), tmp_path)
    assert isinstance(ends["de-dwd/synop/0"].refusal, NotFetched)
    assert node.groups == [["de-dwd/synop/0", "de-dwd/synop/1"], ["de-dwd/synop/0"]]


async def test_a_notification_that_can_not_be_read_ends_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgotten(_topic: object, payload: bytes) -> bytes:
        return b"{}" if b"synop/1" not in payload else bytes(payload[-1:].index(b"x"))

    monkeypatch.setattr("downburst_bridges.fetcher.properties_of", forgotten)
    node = Node()
    ends = await ends_of(node, [*notices(range(2)), notice(2, b"[]")], tmp_path)
    refusals = {name: end.refusal for name, end in ends.items() if end.refusal is not None}
    assert isinstance(refusals.pop("de-dwd/synop/2"), BadInput)
    assert "an error of this hub" in refusals.pop("de-dwd/synop/1").sentence
    assert (refusals, node.groups) == ({}, [["de-dwd/synop/0"]])
    assert [fault.handler for fault in FAULTS.all()] == ["bridges.fetch"]


@pytest.mark.parametrize("refusal", [None, NodeAway("the node is not running")])
async def test_bytes_within_a_notification_are_handed_over_beside_the_group(
    refusal: DownburstError | None, tmp_path: Path
) -> None:
    inline = message(1, of=1, content={"encoding": "utf-8", "value": "abc", "size": 3})
    del inline["properties"]["integrity"]
    node = Node(refusals={} if refusal is None else {"de-dwd/synop/1": refusal})
    ends = await ends_of(node, [notice(0), notice(1, json.dumps(inline).encode())], tmp_path)
    assert ends["de-dwd/synop/1"] == (FetchEnd(0, 9, 3) if refusal is None else FetchEnd(0, refusal=refusal))
    assert node.groups == [["de-dwd/synop/0"]]
