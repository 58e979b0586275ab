"""Settings come from the command line, the environment and a file, in that order; a bad one is one sentence."""

from pathlib import Path

import pytest

from downburst.foundation.errors import BadSettings
from downburst.settings.addresses import split_address
from downburst.settings.hub import load_settings


def test_the_nearer_source_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('name = "from-file"\norigin = "from-file"\nhttp = "127.0.0.1:1"\n[multicast]\nrate_bps = 5\n')
    monkeypatch.setenv("DOWNBURST_NAME", "from-environment")
    monkeypatch.setenv("DOWNBURST_HTTP", "127.0.0.1:2")
    chosen = load_settings(file, http="127.0.0.1:3", sites=None)
    assert (chosen.name, chosen.origin, chosen.http) == ("from-environment", "from-file", "127.0.0.1:3")
    assert chosen.multicast.rate_bps == 5
    assert chosen.sites == "127.0.0.1:7370"


def test_nested_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOWNBURST_MULTICAST__RATE_BPS", "7")
    assert load_settings().multicast.rate_bps == 7


def test_a_feed_may_multicast_in_its_own_way(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(
        "[multicast]\nhops = 4\n[multicast.feeds.NGRID]\nnetwork = 'ff3e::8000:0/97'\nburst_bytes = 64000\n"
        "parity_percent = 2.5\n"
    )
    multicast = load_settings(file).multicast
    own, other = multicast.of("NGRID"), multicast.of("TEXT")
    assert (str(own.network), own.burst_bytes, own.hops) == ("ff3e::8000:0/97", 64_000, 4)
    assert (str(other.network), other.burst_bytes, other.hops) == ("239.77.0.0/16", None, 4)
    assert (own.parity_percent, other.parity_percent, own.loss_quantile, own.repair_s) == (2.5, 0, 0.5, 60)


def test_directories_follow_the_data_directory(tmp_path: Path) -> None:
    chosen = load_settings(data_dir=tmp_path / "d")
    assert chosen.url_of_ledger == f"sqlite:///{tmp_path / 'd' / 'ledger.sqlite'}"
    assert {path.parent for path in (chosen.node_dir, chosen.batch_dir, chosen.spool_dir)} == {tmp_path / "d"}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("tpyo = 1", "no setting 'tpyo'"),
        ("[multicast]\nnetwork = '10.0.0.0/8'", "not a multicast network"),
        ("[multicast.feeds.NGRID]\nnetwork = '2001:db8::/32'", "not a multicast network"),
        ("[multicast]\nhops = 0", "greater than or equal to 1"),
        ("time_scale = 0", "greater than 0"),
        ("http = 'here'", "not HOST:PORT"),
        ("[watch]\nafter = 'burn'", "'remove' or 'move'"),
        ("not toml", "can't be read"),
    ],
)
def test_a_bad_setting_is_one_sentence(tmp_path: Path, text: str, part: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    with pytest.raises(BadSettings) as refused:
        load_settings(file)
    assert part in refused.value.sentence
    assert "\n" not in refused.value.sentence


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("latency_apart = true", "latency_apart"),
        ("[scheduler]\napart = true", "scheduler.apart"),
        ("[circuits]\napart = true", "circuits.apart"),
        ("[alarms]\napart = true", "alarms.apart"),
    ],
)
@pytest.mark.parametrize("server", ["", 'ledger_url = "postgresql://d@db/d"\n', '[kafka]\nservers = "k:9092"\n'])
def test_parts_beside_the_hub_need_both_servers(tmp_path: Path, text: str, name: str, server: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(f"{server}{text}\n" if not server.startswith("[") else f"{text}\n{server}")
    with pytest.raises(BadSettings) as refused:
        load_settings(file)
    assert f"{name} needs a ledger in PostgreSQL (ledger_url) and Kafka (kafka.servers)" in refused.value.sentence
    assert "\n" not in refused.value.sentence


def test_a_file_without_certificates_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    with pytest.raises(BadSettings, match=r"'bridges_ca_file' can't be used: .* has no certificates in PEM"):
        load_settings(None, bridges_ca_file=file)
    file.write_text("no certificate")
    with pytest.raises(BadSettings, match="has no certificates in PEM"):
        load_settings(None, bridges_ca_file=file)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="does not exist"):
        load_settings(tmp_path / "none.toml")


def test_addresses_are_split_from_the_right() -> None:
    assert split_address("[::1]:7371") == ("::1", 7371)
    for bad in ("7371", ":7371", "host:", "host:65536", "host:-1"):
        with pytest.raises(ValueError, match="not HOST:PORT"):
            split_address(bad)


def test_amt_relays_are_addresses_of_hosts(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(
        "[multicast]\namt_relays = ['192.0.2.1', '192.0.2.2:2269', '[2001:db8::1]:2268', '2001:db8::2']\n"
    )
    multicast = load_settings(file).multicast
    assert multicast.amt_interface == "amt:192.0.2.1,192.0.2.2:2269,[2001:db8::1]:2268,2001:db8::2"
    file.write_text("")
    assert load_settings(file).multicast.amt_interface == "amt"


@pytest.mark.parametrize("relay", ["relay.example", "239.0.0.1", "0.0.0.0", "192.0.2.1:0", "192.0.2.1:x", "[::1]x"])
def test_an_amt_relay_without_an_address_is_refused(tmp_path: Path, relay: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(f"[multicast]\namt_relays = ['{relay}']\n")
    with pytest.raises(BadSettings, match="amt_relays"):
        load_settings(file)
