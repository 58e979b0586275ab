"""Two hubs that speak NSI: held in both domains and committed in both, or nothing in either, whoever is killed."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kit.domains import NSA_A, Domains, M, wish

pytestmark = pytest.mark.system


@pytest.fixture
def domains(tmp_path: Path) -> Iterator[Domains]:
    with ExitStack() as stack:
        yield Domains(stack, tmp_path)


@pytest.mark.smoke
def test_a_circuit_is_held_committed_and_given_back_in_both_domains(domains: Domains) -> None:
    circuit = domains.hold()
    assert (domains.states(domains.a), domains.states(domains.b)) == (["held"], ["held"])
    (theirs,) = domains.b.ask("GET", "/v1/circuits?limit=100")
    assert theirs["requested_by"] == f"{NSA_A} (CN=hub-a)"
    assert (theirs["rate_out_bps"], theirs["begin"]) == (100 * M, circuit["begin"])
    assert domains.commit(circuit["circuit"])["state"] == "admitted"
    domains.wait_states(["admitted"], ["admitted"])
    domains.a.ask("DELETE", f"/v1/circuits/{circuit['circuit']}")
    domains.wait_states([], [])


def test_a_refusal_of_the_other_domain_is_in_its_words_and_leaves_this_one_empty(domains: Domains) -> None:
    taken = wish(950, description="a campaign") | {"driver": "linux", "provider": None}
    domains.b.ask("POST", "/v1/circuits", json=taken)
    answer = domains.a.answer("POST", "/v1/circuits", json=wish(100, hold_s=300))
    assert answer.status_code == 409
    assert "00705" in answer.text
    assert "circuit 1 holds 950 Mb/s out" in answer.text
    domains.wait_states([], ["admitted"])


@pytest.mark.nightly
def test_the_other_domain_killed_while_it_holds_still_commits(domains: Domains) -> None:
    circuit = domains.hold()
    domains.kill(domains.b)
    assert domains.states(domains.b) == ["held"]
    assert domains.commit(circuit["circuit"])["state"] == "admitted"
    domains.kill(domains.b)
    domains.kill(domains.a)
    domains.wait_states(["admitted"], ["admitted"])


@pytest.mark.nightly
def test_a_hub_killed_while_it_holds_leaves_nothing_in_either_domain(domains: Domains) -> None:
    domains.hold(seconds=5)
    domains.kill(domains.a)
    domains.wait_states([], [])
    domains.hold(seconds=20)
    domains.a.kill_api()
    domains.b.kill_api()
    domains.b.start()
    domains.a.start()
    domains.wait_states([], [])


def test_a_reservation_is_given_back_although_either_was_killed_in_between(domains: Domains) -> None:
    number = domains.hold()["circuit"]
    domains.commit(number)
    domains.b.kill_api()
    domains.a.ask("DELETE", f"/v1/circuits/{number}")
    domains.kill(domains.a)
    domains.b.start()
    domains.wait_states([], [])
