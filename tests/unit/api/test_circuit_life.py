"""Routes of a circuit's life: holds, paths by hand, overrides, the archive; dry runs, refusals and roles of each."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from downburst.domain.sites import Site
from downburst_circuits.lifecycle import Happening
from downburst_circuits.register import Said
from downburst_circuits.service import CircuitService
from downburst_contract.circuits import CircuitNew
from kit.played_api import TOPOLOGY
from unit.api.conftest import Asked

PORT = {"port": "hub-eth0", "rate_bps": 1_000_000_000, "interface": "eth0", "underlay": "192.0.2.1"}
FAR = {"port": "unl-eth1", "rate_bps": 1_000_000_000, "interface": "eth1", "underlay": "192.0.2.9", "site": "unl.edu"}
TAGS = {"first_vlan": 100, "last_vlan": 199}
WISH: dict[str, Any] = {"sites": [{"site": "unl.edu"}], "rate_out_bps": 600_000_000, "begin": "+1h", "end": "+2h"}


@pytest.fixture
async def ported(hub: Asked) -> Asked:
    with hub.runtime.ledger.transaction() as tx:
        tx.sites.add(Site("unl.edu"))
    await hub.ask("POST", "/v1/ports", 201, json=PORT | TAGS)
    await hub.ask("POST", "/v1/ports", 201, json=FAR | TAGS)
    return hub


async def happen(hub: Asked, number: int, *happenings: Happening) -> None:
    """Moves a circuit on as the controller would, which no test here runs."""
    assert isinstance(hub.runtime.circuits, CircuitService)
    for happening in happenings:
        await hub.runtime.circuits._register.happen(number, happening, Said(f"it is {happening}"))


async def test_a_hold_is_made_shown_and_committed(ported: Asked) -> None:
    tried = await ported.ask("POST", "/v1/circuits?dry_run=true", json=WISH | {"hold_s": 120})
    assert (tried["done"], tried["state"], tried["held_until"]) == (False, "requested", None)
    held = await ported.ask("POST", "/v1/circuits", 201, json=WISH | {"hold_s": 120, "request_id": "n1"})
    assert (held["state"], held["held_until"] is None, held["done"]) == ("held", False, True)
    taken = await ported.problem("POST", "/v1/circuits", 409, "circuit-conflict", json=WISH)
    assert [one["circuit"] for one in taken["circuits"]] == [held["circuit"]]
    again = await ported.ask("POST", "/v1/circuits", json=WISH | {"hold_s": 120, "request_id": "n1"})
    assert (again["circuit"], again["done"]) == (held["circuit"], False)
    route = f"/v1/circuits/{held['circuit']}/commit"
    tried = await ported.ask("POST", f"{route}?dry_run=true")
    assert (tried["state"], tried["done"]) == ("admitted", False)
    committed = await ported.ask("POST", f"{route}?by=eve")
    assert (committed["state"], committed["held_until"], committed["done"]) == ("admitted", None, True)
    whole = await ported.ask("GET", f"/v1/circuits/{held['circuit']}")
    assert [(event["event"], event["by"]) for event in whole["events"]] == [
        ("held", "operator"),
        ("committed", "eve"),
    ]


async def test_a_commit_after_the_hold_is_a_conflict(ported: Asked) -> None:
    held = await ported.ask("POST", "/v1/circuits", 201, json=WISH | {"hold_s": 1})
    await happen(ported, held["circuit"], Happening.EXPIRE)
    late = await ported.problem("POST", f"/v1/circuits/{held['circuit']}/commit", 409, "already-there")
    assert late["detail"].startswith(f"circuit {held['circuit']} is expired, so it can't be committed")
    await ported.problem("POST", "/v1/circuits/999/commit", 404, "not-found")


async def test_a_path_by_hand_is_created_and_torn_down(ported: Asked) -> None:
    made = await ported.ask("POST", "/v1/circuits", 201, json=WISH | {"creation": "by-hand"})
    number = made["circuit"]
    assert made["creation"] == "by-hand"
    early = await ported.problem("POST", f"/v1/circuits/{number}/create-path", 409, "already-there")
    assert "before its window begins" in early["detail"]
    none = await ported.problem("POST", f"/v1/circuits/{number}/tear-down-path", 409, "already-there")
    assert "it has no path to tear down" in none["detail"]
    await happen(ported, number, Happening.OPEN)
    for act, before, after in (
        ("create-path", "waiting", "provisioning"),
        ("tear-down-path", "provisioning", "tearing-down"),
    ):
        tried = await ported.ask("POST", f"/v1/circuits/{number}/{act}?dry_run=true")
        assert (tried["state"], tried["done"]) == (after, False)
        assert (await ported.ask("GET", f"/v1/circuits/{number}"))["state"] == before
        moved = await ported.ask("POST", f"/v1/circuits/{number}/{act}?by=eve")
        assert (moved["state"], moved["done"]) == (after, True)


async def test_an_override_is_shown_and_given_back(ported: Asked) -> None:
    number = (await ported.ask("POST", "/v1/circuits", 201, json=WISH))["circuit"]
    await happen(ported, number, Happening.BEGIN, Happening.BUILT, Happening.FELL_SHORT)
    route = f"/v1/circuits/{number}/override"
    wanted = {"state": "active", "reason": "the probe is wrong", "by": "ann"}
    tried = await ported.ask("POST", f"{route}?dry_run=true", json=wanted)
    assert (tried["state"], tried["done"]) == ("active", False)
    shown = await ported.ask("POST", route, json=wanted)
    assert (shown["state"], shown["probed_state"], shown["overridden"], shown["override_by"]) == (
        "active",
        "degraded",
        "active",
        "ann",
    )
    assert shown["reason"] == "overridden by ann: the probe is wrong"
    assert [one["circuit"] for one in await ported.ask("GET", "/v1/circuits?state=active")] == [number]
    assert await ported.ask("GET", "/v1/circuits?state=degraded") == []
    assert (await ported.ask("GET", "/v1/overview"))["faults"] == []
    cleared = await ported.ask("POST", route, json={"state": None})
    (fault,) = (await ported.ask("GET", "/v1/overview"))["faults"]
    assert fault["sentence"].startswith(f"circuit {number} is degraded")
    assert (cleared["state"], cleared["overridden"], cleared["override_reason"]) == ("degraded", None, None)
    (change, *_) = (await ported.ask("GET", "/v1/audit?kind=circuit"))["items"]
    assert change["before"]["override_reason"] == "the probe is wrong"


async def test_an_administrator_alone_overrides_and_an_operator_does_the_rest(ported: Asked) -> None:
    number = (await ported.ask("POST", "/v1/circuits", 201, json=WISH | {"hold_s": 60}))["circuit"]
    created = await ported.ask("POST", "/v1/access-tokens", 201, json={"name": "desk", "role": "operator"})
    viewer = await ported.ask("POST", "/v1/access-tokens", 201, json={"name": "wall", "role": "viewer"})
    reason = {"state": "down", "reason": "why"}
    for secret, allowed in ((created["token"], True), (viewer["token"], False)):
        headers = {"Authorization": f"Bearer {secret}"}
        for act in ("commit", "create-path", "tear-down-path"):
            answer = await ported.client.post(f"/v1/circuits/{number}/{act}?dry_run=true", headers=headers)
            assert (answer.status_code == 403) is not allowed, answer.text
        answer = await ported.client.post(f"/v1/circuits/{number}/override", headers=headers, json=reason)
        assert answer.status_code == 403, answer.text


async def test_bad_wishes_are_refused_in_one_sentence(ported: Asked) -> None:
    number = (await ported.ask("POST", "/v1/circuits", 201, json=WISH))["circuit"]
    bad: list[dict[str, Any]] = [
        {"hold_s": 0},
        {"hold_s": 3_601},
        {"hold_s": "nan"},
        {"creation": "later"},
        {"include": ["white space"]},
        {"exclude": ["x"] * 101},
        {"path_order": "cheapest"},
        {"include": ["nowhere"]},
    ]
    for wrong in bad:
        await ported.problem("POST", "/v1/circuits", 400, "bad-request", json=WISH | wrong)
    for body in ({}, {"state": "degraded", "reason": "x"}, {"state": "down"}, {"state": "down", "reason": " "}):
        await ported.problem("POST", f"/v1/circuits/{number}/override", 400, "bad-request", json=body)
    await ported.problem("PATCH", f"/v1/circuits/{number}", 400, "bad-request", json={"begin": "1h"})


async def test_a_path_is_chosen_by_the_request(ported: Asked) -> None:
    await ported.ask("PUT", "/v1/topology", json=TOPOLOGY)
    made = await ported.ask("POST", "/v1/circuits", 201, json=WISH | {"include": ["unl"], "path_order": "widest"})
    assert (made["include"], made["exclude"], made["path_order"]) == (["unl"], [], "widest")
    assert "unl" in [hop["link"] for hop in made["path"]]
    none = await ported.problem("POST", "/v1/circuits", 400, "bad-request", json=WISH | {"exclude": ["unl"]})
    assert "without unl" in none["detail"]


async def test_the_archive_is_shown_on_request(ported: Asked) -> None:
    number = (await ported.ask("POST", "/v1/circuits", 201, json=WISH))["circuit"]
    await ported.ask("DELETE", f"/v1/circuits/{number}")
    assert [one["circuit"] for one in await ported.ask("GET", "/v1/circuits?finished=true")] == [number]
    with ported.runtime.ledger.transaction() as tx:
        kept = tx.circuits.one(number)
        assert kept.since is not None
        long_ago = kept.since - timedelta(days=ported.runtime.settings.circuits.archive_days, seconds=1)
        tx.circuits.save(replace(kept, since=long_ago))
    assert await ported.ask("GET", "/v1/circuits?finished=true") == []
    (old,) = await ported.ask("GET", "/v1/circuits?archived=true")
    assert (old["circuit"], old["state"]) == (number, "cancelled")


def test_a_request_of_an_earlier_release_is_still_the_same_request() -> None:
    asked = CircuitNew(**WISH)
    assert asked._sha256() == EARLIER
    assert asked._sha256() == CircuitNew.model_validate(WISH | {"creation": "automatic", "include": []})._sha256()
    assert asked._sha256() != CircuitNew(**WISH, hold_s=60)._sha256()


EARLIER = "7baab3d83f1bbd41d7e4ad244dd82cdedf4b57506ce3ea646b8ddd2e3adcef71"
"""The hash of this request in the release before."""
