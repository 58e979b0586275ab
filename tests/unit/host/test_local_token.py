"""The token with which local commands authenticate to a hub, and its protection from others."""

import os
import stat
from pathlib import Path

import pytest

from downburst.domain.access import LOCAL_PREFIX
from downburst.foundation.errors import BadInput
from downburst.host import local_token
from downburst.host.local_token import authorization, leave, save_login, take_back, token_for

HUB = "http://127.0.0.1:7371"


@pytest.fixture(autouse=True)
def _own_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    for name in (local_token.TOKEN_VARIABLE, local_token.TOKEN_FILE_VARIABLE):
        monkeypatch.delenv(name, raising=False)


def test_a_running_hub_is_found_by_its_port(tmp_path: Path) -> None:
    assert authorization(HUB) == {}
    token = leave(tmp_path, port=7371)
    file = tmp_path / "operator.token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().strip() == token == token_for(HUB) == token_for("http://localhost:7371/")
    assert token_for("http://127.0.0.1:7372") is None
    assert token_for("http://192.0.2.1:7371") is None, "the token of this machine's hub is shown to no other host"
    take_back(port=7371)
    assert token_for(HUB) is None


def test_another_start_keeps_the_token_and_a_removed_file_changes_it(tmp_path: Path) -> None:
    first = leave(tmp_path, port=7371)
    assert leave(tmp_path, port=7371) == first
    (tmp_path / "operator.token").unlink()
    assert leave(tmp_path, port=7371) != first


def test_a_file_that_others_can_read_is_not_believed(tmp_path: Path) -> None:
    first = leave(tmp_path, port=7371)
    (tmp_path / "operator.token").chmod(0o644)
    assert leave(tmp_path, port=7371) != first


def test_whoever_took_the_port_of_a_dead_hub_is_told_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 2**22 + 1)
    leave(tmp_path, port=7371)
    assert token_for(HUB) is None


def test_a_hub_starts_where_it_can_write_its_data_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "file"))
    token = leave(tmp_path, port=7371)
    assert (tmp_path / "operator.token").read_text().strip() == token
    assert token_for(HUB) is None
    take_back(port=7371)


def test_a_user_without_a_home_has_logins_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    save_login(HUB, "dbs_login")
    assert token_for(HUB) == "dbs_login"


def test_what_is_given_comes_first_and_a_login_before_the_local_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = leave(tmp_path, port=7371)
    save_login(HUB + "/", "dbs_login")
    assert token_for(HUB) == "dbs_login"
    file = tmp_path / "token"
    file.write_text("dba_file\n")
    monkeypatch.setenv(local_token.TOKEN_FILE_VARIABLE, str(file))
    assert token_for(HUB) == "dba_file"
    monkeypatch.setenv(local_token.TOKEN_VARIABLE, "dba_given")
    assert token_for(HUB) == "dba_given"
    for name in (local_token.TOKEN_VARIABLE, local_token.TOKEN_FILE_VARIABLE):
        monkeypatch.delenv(name)
    save_login(HUB, None)
    assert token_for(HUB) == local


def test_a_token_file_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(local_token.TOKEN_FILE_VARIABLE, "/none")
    with pytest.raises(BadInput, match="/none can't be read"):
        token_for(HUB)


def test_a_damaged_file_is_written_anew(tmp_path: Path) -> None:
    first = leave(tmp_path, port=7371)
    (tmp_path / "operator.token").write_bytes(b"\xa5\xff")
    assert leave(tmp_path, port=7371) != first
    assert (tmp_path / "operator.token").read_text().startswith(LOCAL_PREFIX)
