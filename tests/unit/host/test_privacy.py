"""A hub's files are accessible to its user alone, whatever the umask at their creation."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from downburst.host.privacy import make_private
from downburst.settings.hub import load_settings
from downburst_app.wiring.process import make_data_dir


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_finding_09_a_data_directory_is_made_for_its_user_alone(tmp_path: Path) -> None:
    settings = load_settings(None, data_dir=tmp_path / "hub")
    make_data_dir(settings)
    for made in (settings.data_dir, settings.node_dir, settings.batch_dir, settings.spool_dir):
        assert mode(made) == 0o700, made


def test_finding_09_one_of_an_earlier_release_is_closed_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hub = tmp_path / "hub"
    (hub / "node" / "log").mkdir(parents=True)
    (hub / "node" / "program").touch()
    (hub / "node" / "program").chmod(0o755)
    (hub / "ledger.sqlite").write_text("hashes")
    outside = tmp_path / "outside"
    outside.write_text("of somebody else")
    outside.chmod(0o644)
    (hub / "link").symlink_to(outside)
    assert (mode(hub), mode(hub / "ledger.sqlite")) == (0o755, 0o644)
    with caplog.at_level(logging.WARNING):
        make_data_dir(load_settings(None, data_dir=hub))
    assert [mode(hub), mode(hub / "node"), mode(hub / "node" / "log")] == [0o700] * 3
    assert (mode(hub / "ledger.sqlite"), mode(hub / "node" / "program")) == (0o600, 0o700)
    assert mode(outside) == 0o644, "a link is left to what it leads to"
    assert "was open to other users" in caplog.text
    caplog.clear()
    make_data_dir(load_settings(None, data_dir=hub))
    assert caplog.text == "", "what is closed is not spoken of again"


def test_where_others_leave_files_they_still_can(tmp_path: Path) -> None:
    hub, incoming = tmp_path / "hub", tmp_path / "hub" / "incoming"
    incoming.mkdir(parents=True)
    incoming.chmod(0o777)
    (hub / "ledger.sqlite").touch()
    make_private(hub, apart=incoming)
    assert (mode(hub), mode(incoming), mode(hub / "ledger.sqlite")) == (0o711, 0o777, 0o600)


def test_what_can_not_be_closed_is_said_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hub").mkdir(mode=0o755)

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refuse)
    assert make_private(tmp_path / "hub") == 0
    assert "can't be closed (Operation not permitted)" in caplog.text
