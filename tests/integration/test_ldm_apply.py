"""LDM's files become a hub: imported, shown, applied, applied again; then LDMs send and receive products by it."""

from pathlib import Path

import pytest

from downburst_app.cli import main
from integration.conftest import RunningHub, Starter, until
from kit.ldm.wire import NGRID, OK, Asked, Product, Serving, connected
from kit.ports import free_port


def said(hub: RunningHub, *argv: str) -> str:
    """The output of a command that must succeed."""
    done = hub.command(*argv)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.all
def test_an_ldm_moves_in_by_its_own_files(starter: Starter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream = Serving()
    (tmp_path / "ldmd.conf").write_text(
        f'REQUEST NGRID ".*" {upstream.address}\n'
        "ALLOW NGRID ^(127\\.0\\.0\\.1|host\\.example\\.org)$ ^keep ^keep.not\n"
        "ACCEPT EXP ^rtstats ^elsewhere$\n"
    )
    monkeypatch.setenv("DOWNBURST_LDM__LISTEN", '["127.0.0.1:0"]')
    hub, declared = starter.hub(), tmp_path / "declared.yaml"
    declared.write_text(said(hub, "import", "ldm", "--ldmd-conf", str(tmp_path / "ldmd.conf")))
    shown = said(hub, "apply", "-f", str(declared), "--dry-run").splitlines()
    assert shown[0].startswith("add feed NGRID: class grid, ldm_feed_type NGRID")
    assert f"add LDM source ngrid: NGRID .* from {upstream.address}" in shown
    assert hub.ask("GET", "/v1/feeds") == [], "shown, not done"
    assert said(hub, "apply", "-f", str(declared), "--yes").endswith("7 changes made\n")
    assert said(hub, "apply", "-f", str(declared), "--yes") == "the hub matches the file; nothing to change\n"
    wanted, other = Product.of("keep this", b"1"), Product.of("keep not", b"2")
    upstream.put(wanted, other)
    until("the products are here", lambda: _stored(hub) == 2)
    (address,) = hub.ask("GET", "/v1/ldm/peers")["addresses"]
    with connected(address) as wire:
        asked = Asked(wire)
        assert asked.feed_me((NGRID, ".*"))[0] == OK
        assert [one.ident for one in asked.take(1)] == ["keep this"]
        assert hub.ask("GET", "/v1/ldm/peers")["peers"][0]["what"] == "feedme"
    upstream.close()


@pytest.mark.all
def test_finding_20_a_hub_starts_with_what_import_wrote(
    starter: Starter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, settings, declared = free_port(), tmp_path / "hub.toml", tmp_path / "declared.yaml"
    registry = tmp_path / "registry.xml"
    registry.write_text((SITE / "registry.xml").read_text().replace("<port>388<", f"<port>{port}<"))
    monkeypatch.setenv("DOWNBURST_LDM__LISTEN", f'["127.0.0.1:{port}"]')
    command = ["import", "ldm", "--ldmd-conf", str(SITE / "ldmd.conf"), "--registry", str(registry)]
    with pytest.raises(SystemExit) as end:
        main([*command, "--settings", str(settings)])
    assert end.value.code == 0
    assert f'ldm.listen = ["0.0.0.0:{port}"]' in settings.read_text()
    hub = starter.hub(arguments=["--settings", str(settings)])
    declared.write_text(said(hub, *command))
    assert said(hub, "apply", "-f", str(declared), "--yes").endswith(" changes made\n")
    assert said(hub, "apply", "-f", str(declared), "--yes") == "the hub matches the file; nothing to change\n"
    assert hub.ask("GET", "/v1/ldm/peers")["addresses"] == [f"127.0.0.1:{port}"]
    assert {one["max_age_s"] for one in hub.ask("GET", "/v1/ldm/sources")} == {3600}


def _stored(hub: RunningHub) -> int:
    (source,) = hub.ask("GET", "/v1/ldm/sources")
    return int(source["state"][0].get("stored", 0))


SITE = Path(__file__).parents[1] / "unit" / "ldm" / "site"
