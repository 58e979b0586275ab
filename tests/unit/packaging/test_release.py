"""A release's list of digests is signed with a key; a missing key is reported, and a changed byte is detected."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = str(ROOT / "scripts" / "release.sh")
needs_keys = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None, reason="ssh-keygen is missing; apt-get install openssh-client"
)


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A folder with files, as building leaves it."""
    folder = tmp_path / "release"
    folder.mkdir()
    for name in ("downburst_0.1.0_amd64.deb", "downburst-0.1.0.cdx.json"):
        (folder / name).write_text(name)
    (folder / ".built-sbom").write_text("a commit")
    return folder


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A throwaway key."""
    file = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)
    return file


@needs_keys
def test_a_signed_release_is_verified_as_security_md_says(built: Path, key: Path) -> None:
    done = release("--out", str(built), "--seal-only", "--key", str(key))
    assert done.returncode == 0, done.stderr
    listed = (built / "SHA256SUMS").read_text().split()[1::2]
    assert listed == ["downburst-0.1.0.cdx.json", "downburst_0.1.0_amd64.deb"]
    assert verified(built, key)
    assert whole(built)


@needs_keys
def test_a_changed_byte_is_noticed(built: Path, key: Path) -> None:
    release("--out", str(built), "--seal-only", "--key", str(key))
    package = built / "downburst_0.1.0_amd64.deb"
    package.write_text(package.read_text().replace("0.1.0", "0.1.1"))
    assert verified(built, key)
    assert not whole(built), "a changed file has the digest of another"
    sums = built / "SHA256SUMS"
    text = sums.read_text()
    sums.write_text(("0" if text[0] != "0" else "1") + text[1:])
    assert not verified(built, key), "a changed list has the signature of another"


@needs_keys
def test_the_signature_of_another_key_is_not_taken(built: Path, key: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    release("--out", str(built), "--seal-only", "--key", str(other))
    assert not verified(built, key)


def test_a_release_without_a_key_says_that_it_is_not_signed(built: Path) -> None:
    (built / "SHA256SUMS.sig").write_text("of before")
    done = release("--out", str(built), "--seal-only")
    assert done.returncode == 0
    assert "is NOT SIGNED: there was no --key" in done.stdout
    assert not (built / "SHA256SUMS.sig").exists()


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    done = release("--dry-run", "--out", str(tmp_path / "nowhere"))
    assert done.returncode == 0
    assert "would build: packages\n" in done.stdout
    assert "would sign:  no, there is no --key" in done.stdout
    assert not (tmp_path / "nowhere").exists()


def test_what_was_built_from_this_commit_is_not_built_again(built: Path) -> None:
    head = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    (built / ".built-node").write_text(head.stdout)
    done = release("--dry-run", "--out", str(built))
    assert "would build: node (is there, from this commit)" in done.stdout
    assert "would build: sbom\n" in done.stdout


def test_bad_options_are_refused_with_the_good_ones(tmp_path: Path) -> None:
    assert release("--sign").returncode == 2
    assert "--key FILE" in release("--help").stdout
    missing = release("--out", str(tmp_path), "--key", str(tmp_path / "no-key"))
    assert missing.returncode == 1
    assert "There is no key" in missing.stderr
    (tmp_path / "empty").mkdir()
    assert "There is nothing in" in release("--out", str(tmp_path / "empty"), "--seal-only").stderr


def release(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SCRIPT, *options], capture_output=True, text=True, check=False)


def verified(folder: Path, key: Path) -> bool:
    """True if the command of SECURITY.md accepts the signature."""
    signers = folder.parent / "allowed_signers"
    signers.write_text(f"release@downburst {key.with_suffix('.pub').read_text()}")
    command = ["ssh-keygen", "-Y", "verify", "-f", str(signers), "-I", "release@downburst", "-n", "downburst-release"]
    with (folder / "SHA256SUMS").open() as sums:
        done = subprocess.run(
            [*command, "-s", str(folder / "SHA256SUMS.sig")], stdin=sums, capture_output=True, check=False
        )
    return done.returncode == 0


def whole(folder: Path) -> bool:
    done = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=folder, capture_output=True, check=False)
    return done.returncode == 0
