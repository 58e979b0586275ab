"""A command's token for a hub: given, saved by `downburst login`, or left by a hub of this machine.

A hub keeps a token for its own user's commands in DATA_DIR/operator.token and, while it runs, also under its port in
the user's runtime directory. Both are readable by that user only; without the first a start creates another token.
"""

import json
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from downburst.domain.access import LOCAL_PREFIX, new_secret
from downburst.foundation.errors import BadInput


def token_for(address: str) -> str | None:
    """The token for the hub at this address, if there is one."""
    if given := os.environ.get(TOKEN_VARIABLE):
        return given.strip()
    if file := os.environ.get(TOKEN_FILE_VARIABLE):
        return _read_given(Path(file))
    return saved_logins().get(_same(address)) or _of_this_machine(address)


def authorization(address: str) -> dict[str, str]:
    """The header with the token; empty if there is none."""
    token = token_for(address)
    return {"Authorization": f"Bearer {token}"} if token else {}


def leave(data_dir: Path, *, port: int) -> str:
    """Writes the token of this process's hub to the places where commands of the same user look for it."""
    kept = _read_private(data_dir / FILE_NAME)
    token = kept if kept and kept.startswith(LOCAL_PREFIX) else new_secret(LOCAL_PREFIX)
    if token != kept:
        write_private(data_dir / FILE_NAME, token)
    # Without a writable place, as in a read-only container, commands are given the file of the data directory.
    with suppress(BadInput):
        write_private(_runtime_file(port), f"{token} {os.getpid()}")
    return token


def take_back(*, port: int) -> None:
    """Removes the file that `leave` wrote in the runtime directory, unless another hub has the port by now."""
    file = _runtime_file(port)
    if (_read_private(file) or "").endswith(f" {os.getpid()}"):
        file.unlink(missing_ok=True)


def saved_logins() -> dict[str, str]:
    """Tokens by address, as `downburst login` saved them."""
    text = _read_private(_logins_file())
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return {str(address): str(token) for address, token in found.items()} if isinstance(found, dict) else {}


def save_login(address: str, token: str | None) -> Path:
    """Saves the token of a hub for later commands; None removes it."""
    kept = {known: value for known, value in saved_logins().items() if known != _same(address)}
    if token is not None:
        kept[_same(address)] = token
    file = _logins_file()
    write_private(file, json.dumps(kept, indent=2))
    return file


def write_private(file: Path, text: str) -> None:
    """Writes a file that only its owner can read, atomically."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
        with os.fdopen(handle, "w") as opened:
            opened.write(text + "\n")
        Path(name).replace(file)
    except OSError as error:
        raise BadInput(f"{file} can't be written ({error.strerror}); correct the rights of its directory") from error


def _of_this_machine(address: str) -> str | None:
    parts = urlsplit(address)
    # The token of this machine's hub is sent to this machine only.
    if parts.hostname not in _LOOPBACK:
        return None
    token, _, process = (_read_private(_runtime_file(parts.port or 80)) or "").partition(" ")
    # A process that took over the port of a dead hub does not get its token.
    return token if token and process.isdecimal() and Path(f"/proc/{process}").exists() else None


def _read_given(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError as error:
        raise BadInput(
            f"the token file {file} can't be read ({error.strerror}); {TOKEN_FILE_VARIABLE} names it"
        ) from error


def _read_private(file: Path) -> str | None:
    """The content of a file that only this user could have written or read; else None."""
    try:
        with file.open() as opened:
            found = os.fstat(opened.fileno())
            if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
                return None
            return opened.read().strip() or None
    except (OSError, UnicodeDecodeError):
        # A damaged file counts as missing; a hub writes its own again.
        return None


def _runtime_file(port: int) -> Path:
    base = os.environ.get("XDG_RUNTIME_DIR")
    directory = Path(base) / "downburst" if base else Path(tempfile.gettempdir()) / f"downburst-{os.geteuid()}"
    return directory / f"{_network_namespace()}-{port}.token"


def _network_namespace() -> int:
    """Loopback addresses of containers are not those of the host, although the user may be the same."""
    try:
        return Path("/proc/self/ns/net").stat().st_ino
    except OSError:
        return 0


def _logins_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    if base:
        return Path(base) / "downburst" / "logins.json"
    try:
        return Path.home() / ".config" / "downburst" / "logins.json"
    except RuntimeError:
        # A user without a home directory, as in containers.
        return _runtime_file(0).with_name("logins.json")


def _same(address: str) -> str:
    return address.rstrip("/").lower()


TOKEN_VARIABLE = "DOWNBURST_TOKEN"  # noqa: S105 - a name
TOKEN_FILE_VARIABLE = "DOWNBURST_TOKEN_FILE"  # noqa: S105 - a name
FILE_NAME = "operator.token"
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
