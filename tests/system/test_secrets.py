"""No secret is written to a log, even at the most verbose level."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.node import SiteNode
from kit.patience import wait_for
from kit.whole_hub import WholeHub

pytestmark = [pytest.mark.system]
PASSWORD = "four words nobody guesses"
WEBHOOK_KEY = "T0/B1/kept-from-everybody"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[WholeHub]:
    talkative = tmp_path / "talkative.py"
    talkative.write_text(TALKATIVE)
    prefix = ["env", "DOWNBURST_LOG=trace", sys.executable, str(talkative)]
    hub = WholeHub(tmp_path / "hub", prefix=prefix).start()
    yield hub
    hub.stop()


def test_no_log_tells_a_secret(hub: WholeHub, tmp_path: Path) -> None:
    secrets = {"the operator's token": hub.authorization["Authorization"].removeprefix("Bearer ")}
    secrets |= signed_in(hub) | programs(hub)
    site = SiteNode(tmp_path / "one", hub.sites, prefix=["env", "DOWNBURST_LOG=trace"])
    try:
        secrets |= received(hub, site)
    finally:
        site.stop()
    logs = {"the hub's log": hub.log(), "the site's log": site.log()}
    for where, text in logs.items():
        assert "DEBUG" in text, f"{where} says all it can"
        told = [what for what, secret in secrets.items() if secret in text]
        assert told == [], f"{where} tells these: {told}"
    assert len(set(secrets.values())) == len(secrets) >= 9


def signed_in(hub: WholeHub) -> dict[str, str]:
    """The secrets of a user: invitation, password, and session."""
    link = str(hub.ask("POST", "/v1/users", json={"user": "anna", "role": "operator"})["fragment"]).partition("=")[2]
    answer = ask_as_a_stranger(hub, "/v1/session/link", {"link": link, "password": PASSWORD})
    wrong = {"user": "anna", "password": PASSWORD + " or not"}
    assert httpx.post(f"http://{hub.http}/v1/session", json=wrong, timeout=60).status_code == 401
    bearer = ask_as_a_stranger(hub, "/v1/session", {"user": "anna", "password": PASSWORD, "bearer": True}).json()
    (secret,) = (value for value in bearer.values() if isinstance(value, str) and value.startswith("dbs_"))
    return {
        "an invitation": link,
        "a password": PASSWORD,
        "a session of a browser": next(iter(answer.cookies.values())),
        "a session of a program": secret,
    }


def ask_as_a_stranger(hub: WholeHub, path: str, body: dict[str, Any]) -> httpx.Response:
    answer = httpx.post(f"http://{hub.http}{path}", json=body, timeout=60)
    assert answer.is_success, answer.text
    return answer


def programs(hub: WholeHub) -> dict[str, str]:
    """The secrets of programs and of alarm receivers, one of which is reported as unreachable."""
    token = hub.ask("POST", "/v1/access-tokens", json={"name": "radar", "role": "viewer"})["token"]
    asked = httpx.get(f"http://{hub.http}/v1/feeds", headers={"Authorization": f"Bearer {token}"}, timeout=60)
    assert asked.is_success
    address = f"http://127.0.0.1:9/{WEBHOOK_KEY}"
    hub.ask("POST", "/v1/alarm-receivers", json={"receiver": "chat", "kind": "webhook", "address": address})
    assert not hub.answer("POST", "/v1/alarm-receivers/chat/test").is_success
    return {"an access token": token, "the key of a webhook": WEBHOOK_KEY}


def received(hub: WholeHub, site: SiteNode) -> dict[str, str]:
    """The secrets of a receiver: its token and its credentials, through a replacement."""
    hub.ask("POST", "/v1/sites", json={"site": "one"})
    token = str(hub.ask("POST", "/v1/sites/one/tokens", json={})["token"])
    site.directory.mkdir()
    site.token_file.write_text(token)
    site.start()
    wait_for("a session", lambda: hub.ask("GET", "/v1/sites/one")["connected"])
    hub.ask("POST", "/v1/sites/one/credentials/replacement")

    def is_replaced() -> bool:
        return any(one["replaced_at"] for one in hub.ask("GET", "/v1/sites/one")["credentials"])

    wait_for("another credential", is_replaced)
    kept = json.loads((site.directory / "state" / "identity.json").read_text())
    return {
        "an enrolment token": token.rsplit(".", 1)[1],
        "a credential": kept["secret"],
        "a former credential": kept["former_secret"],
    }


TALKATIVE = """\
import logging, runpy, sys

configured = logging.basicConfig
logging.basicConfig = lambda **given: configured(**given | {"level": logging.DEBUG})
level_of = logging.Logger.setLevel
logging.Logger.setLevel = lambda self, level: level_of(self, logging.DEBUG)
# Below that it tells what it read: rows of the ledger as they are.
level_of(logging.getLogger("sqlalchemy"), logging.INFO)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
