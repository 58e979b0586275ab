"""Backup of a hub into one file, and restoration from it."""

import gzip
import hashlib
import io
import json
import stat
import tarfile
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from downburst.domain.feeds import Feed
from downburst.domain.resends import Resend
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import BadInput, DownburstError
from downburst.ledger import Ledger, standing_of
from downburst.settings.hub import Settings, load_settings
from downburst_app.backup import Manifest, back_up, inspect, restore
from factories import plan, settings, sketch_row, unicast
from kit.next_release import next_release


@pytest.fixture
def hub(tmp_path: Path, clock: FakeClock) -> Settings:
    """A hub's directory with entries of every kind, and with numbers that were assigned and removed."""
    made = settings(tmp_path / "hub")
    log = made.node_dir / "log" / "NGRID"
    log.mkdir(parents=True)
    for name, content in (("identity", b"who"), ("sequence", b"where"), ("00000000000000000001.segment", b"x" * 999)):
        (log / name).write_bytes(content)
    (made.node_dir / "tls").mkdir()
    for name in ("ca.pem", "ca.key"):
        (made.node_dir / "tls" / name).write_text(name)
    ledger = Ledger.open(made.url_of_ledger, clock)
    with ledger.transaction() as tx:
        tx.feeds.add(Feed("NGRID"))
        tx.sites.add(Site("unl.edu", allow=("NGRID",)))
        for _ in range(3):
            last = tx.subscriptions.add(Subscription(0, "unl.edu", "NGRID", "ü\n{}"))
        tx.subscriptions.remove(last.id)
        tx.enrolment.tokens.add("unl.edu", "secret", lifetime=timedelta(hours=1))
        tx.enrolment.tokens.consume("secret", "c" * 64, peer="p")
        tx.planning.plans.append(plan("NGRID", unicast(1, "unl.edu")))
        tx.measured.latency.add(sketch_row([1.0, 2.0]))
        tx.resends.add(Resend(0, "unl.edu", "NGRID", clock.now(), clock.now()))
    ledger.close()
    return made


def everything(chosen: Settings, clock: FakeClock) -> list[object]:
    ledger = Ledger.open(chosen.url_of_ledger, clock)
    with ledger.transaction(writes=False) as tx:
        found: list[object] = [
            tx.feeds.all(),
            tx.sites.all(),
            tx.enrolment.credentials.of("unl.edu"),
            tx.enrolment.tokens.of("unl.edu"),
            tx.subscriptions.all(),
            tx.planning.plans.all_current(),
            tx.resends.newest(),
        ]
    ledger.close()
    return found


def test_a_restored_hub_knows_what_the_first_knew(hub: Settings, tmp_path: Path, clock: FakeClock) -> None:
    target = tmp_path / "hub.dbb"
    target.write_text("an older backup")
    written = back_up(hub, target, clock)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert written == inspect(target)
    assert (written.rows["subscriptions"], written.feeds) == (2, ["NGRID"])
    fresh = load_settings(None, data_dir=tmp_path / "fresh")
    restore(fresh, target)
    assert everything(fresh, clock) == everything(hub, clock)
    log = fresh.node_dir / "log" / "NGRID"
    assert sorted(path.name for path in log.iterdir()) == ["identity", "restored", "sequence"]
    assert (fresh.node_dir / "tls" / "ca.key").read_text() == "ca.key"
    assert stat.S_IMODE((fresh.node_dir / "tls" / "ca.key").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_numbers_are_not_given_twice_after_a_restore(hub: Settings, tmp_path: Path, clock: FakeClock) -> None:
    back_up(hub, tmp_path / "b", clock)
    fresh = load_settings(None, data_dir=tmp_path / "fresh")
    restore(fresh, tmp_path / "b")
    ledger = Ledger.open(fresh.url_of_ledger, clock)
    with ledger.transaction() as tx:
        assert tx.subscriptions.add(Subscription(0, "unl.edu", "NGRID")).id == 4
    ledger.close()


def test_a_restore_never_writes_over_a_hub(hub: Settings, tmp_path: Path, clock: FakeClock) -> None:
    back_up(hub, tmp_path / "b", clock)
    with pytest.raises(BadInput, match="is not empty; a restore never writes over a hub"):
        restore(hub, tmp_path / "b")
    elsewhere = load_settings(None, data_dir=tmp_path / "fresh", ledger_url=hub.url_of_ledger)
    with pytest.raises(BadInput, match=r"has rows already \(in "):
        restore(elsewhere, tmp_path / "b")


def test_no_hub_no_backup(tmp_path: Path, clock: FakeClock) -> None:
    with pytest.raises(BadInput, match="there is no hub in"):
        back_up(settings(tmp_path / "hub"), tmp_path / "b", clock)
    assert not (tmp_path / "b").exists()


def test_every_flipped_byte_is_found(hub: Settings, tmp_path: Path, clock: FakeClock) -> None:
    back_up(hub, tmp_path / "b", clock)
    whole = (tmp_path / "b").read_bytes()
    found = 0
    for at in range(0, len(whole), 37):
        (tmp_path / "b").write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        with suppress(DownburstError):
            # A byte in the archive's padding or in the gzip header does not affect the hub's data.
            assert inspect(tmp_path / "b").rows["sites"] == 1
            continue
        found += 1
    assert found > len(whole) / 37 * 0.8
    (tmp_path / "b").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DownburstError, match="make another backup"):
        inspect(tmp_path / "b")


def test_a_file_outside_is_refused(hub: Settings, tmp_path: Path, clock: FakeClock) -> None:
    repack(back_up(hub, tmp_path / "b", clock), tmp_path / "b", lambda name: name.replace("node/tls", "node/../.."))
    with pytest.raises(DownburstError, match="is damaged"):
        restore(load_settings(None, data_dir=tmp_path / "fresh"), tmp_path / "b")
    assert not (tmp_path / "ca.key").exists()


@pytest.mark.parametrize("content", [b"", b"no archive", gzip.compress(b"no archive", mtime=0)])
def test_what_is_no_backup_is_said(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "b").write_bytes(content)
    with pytest.raises(DownburstError, match=r"\w"):
        inspect(tmp_path / "b")
    with pytest.raises(BadInput, match="No such file"):
        inspect(tmp_path / "none")


def test_a_newer_schema_is_refused(hub: Settings, tmp_path: Path, clock: FakeClock) -> None:
    manifest = back_up(hub, tmp_path / "b", clock)
    repack(manifest, tmp_path / "b", lambda name: name, revision="9999")
    with pytest.raises(BadInput, match="another version of Downburst"):
        inspect(tmp_path / "b")


@pytest.mark.parametrize("migrated", [True, False])
def test_the_next_release_restores_what_this_one_backed_up(
    hub: Settings, tmp_path: Path, clock: FakeClock, migrated: bool
) -> None:
    written = back_up(hub, tmp_path / "b", clock)
    fresh = load_settings(None, data_dir=tmp_path / "fresh")
    with next_release(tmp_path) as revision:
        restore(fresh, tmp_path / "b", migrated=migrated)
        assert standing_of(fresh.url_of_ledger).found == (revision if migrated else written.revision)
        assert everything(fresh, clock) == everything(hub, clock)
        assert standing_of(fresh.url_of_ledger).found == revision
        back_up(fresh, tmp_path / "later", clock)
    with pytest.raises(BadInput, match="another version of Downburst"):
        inspect(tmp_path / "later")


@pytest.mark.parametrize(
    ("table", "before", "after"),
    [
        ("subscriptions", b"unl.edu", b"nowhere"),
        ("subscriptions", b'"unl.edu"', b"null"),
    ],
    ids=["a site that is not there", "a value that is not there"],
)
def test_rows_that_do_not_fit_together_are_refused_in_a_sentence(
    hub: Settings, tmp_path: Path, clock: FakeClock, table: str, before: bytes, after: bytes
) -> None:
    back_up(hub, tmp_path / "b", clock)

    def edit(name: str, content: bytes) -> bytes:
        return content.replace(before, after) if name == f"ledger/{table}.jsonl" else content

    repack(None, tmp_path / "b", lambda name: name, edit)
    with pytest.raises(DownburstError, match=r"rows do not fit together .*; make another backup") as refused:
        restore(load_settings(None, data_dir=tmp_path / "fresh"), tmp_path / "b")
    assert "\n" not in refused.value.sentence


def repack(
    manifest: Manifest | None,
    path: Path,
    rename: Callable[[str], str],
    edit: Callable[[str, bytes], bytes] = lambda _, content: content,
    **change: str,
) -> None:
    """Rewrites a backup with other names, contents and manifest; the hashes are computed if no manifest is given."""
    with tarfile.open(path) as archive:
        files = {entry.name: archive.extractfile(entry) for entry in archive}
        contents = {name: edit(name, file.read() if file else b"") for name, file in files.items()}
    head = json.loads(contents.pop("manifest.json")) | change
    hashes = (
        {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        if manifest is None
        else manifest.sha256
    )
    head["sha256"] = {rename(name): digest for name, digest in hashes.items()}
    with tarfile.open(path, "w:gz") as archive:
        for name, content in {"manifest.json": json.dumps(head).encode(), **contents}.items():
            entry = tarfile.TarInfo(name if name == "manifest.json" else rename(name))
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
