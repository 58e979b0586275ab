"""The command that starts a sender on this machine: it has the fleet's settings and a place of its own."""

from pathlib import Path

import pytest

from downburst.fleet.children import ChildFleet
from downburst.foundation.errors import BadSettings
from downburst.settings.hub import load_settings
from downburst_app.wiring.fleet import fleet_of, sender_command

CHILDREN = {"kind": "children", "first_port": 7400}


def test_two_of_a_machine_share_nothing_but_settings_and_ledger(tmp_path: Path) -> None:
    file = tmp_path / "hub.toml"
    url = "postgresql://downburst:secret@db.example.edu/downburst"
    settings = load_settings(data_dir=tmp_path, sites="127.0.0.1:7370", ledger_url=url, fleet=CHILDREN)
    first, second = (sender_command(settings, file, "sender1.example.edu", number) for number in range(2))
    assert list(first.argv)[-3:] == ["sender", "--settings", str(file)]
    assert "secret" not in " ".join(first.argv), "everybody on the machine sees arguments"
    shared = {"DOWNBURST_LEDGER_URL": url}
    assert shared.items() == first.environment.items() & second.environment.items()
    assert second.environment["DOWNBURST_SENDER__PUBLIC"] == "sender1.example.edu:7402"
    assert second.environment["DOWNBURST_SITES"] == "127.0.0.1:7402"
    assert second.ready_url == f"http://{second.environment['DOWNBURST_HTTP']}/health/ready"
    assert second.environment["DOWNBURST_HTTP"] == "127.0.0.1:7403"


def test_addresses_may_be_ipv6(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path, sites="[::]:7370", fleet=CHILDREN)
    command = sender_command(settings, None, "2001:db8::7", 0)
    assert command.environment["DOWNBURST_SITES"] == "[::]:7400"
    assert command.environment["DOWNBURST_SENDER__PUBLIC"] == "[2001:db8::7]:7400"
    assert "--settings" not in command.argv


@pytest.mark.parametrize("sites", ["0.0.0.0:7370", "[::]:7370"])
def test_every_address_is_none_that_sites_could_be_told(tmp_path: Path, sites: str) -> None:
    with pytest.raises(BadSettings, match=r"set sender\.public to HOST:PORT"):
        fleet_of(load_settings(data_dir=tmp_path, sites=sites, fleet=CHILDREN), None)
    told = {"public": "sender1.example.edu:7370"}
    found = fleet_of(load_settings(data_dir=tmp_path, sites=sites, fleet=CHILDREN, sender=told), None)
    assert isinstance(found, ChildFleet)
