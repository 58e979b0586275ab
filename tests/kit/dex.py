"""A real provider of OpenID Connect on this machine: dex, with users and groups from its configuration."""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import httpx
import yaml  # type: ignore[import-untyped]

from kit import running
from kit.capabilities import skip
from kit.patience import wait_for
from kit.ports import free_port

PASSWORD = "password"
_HASH = "$2a$10$2b2cU8CPhOTaGrs1HRQuAueS7JTT5ZHsHSzYiFPm1leZck7Mc8T4W"
"""Of that password; dex takes bcrypt alone, which costs it a tenth of a second."""
CLIENT, SECRET = "downburst", "secret of the hub"


def program() -> str:
    """The built dex; skips the test where there is none."""
    named = os.environ.get("DOWNBURST_DEX", "")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "downburst-cluster" / "bin" / "dex"
    found = named or (str(cache) if os.access(cache, os.X_OK) else shutil.which("dex"))
    if not found or not os.access(found, os.X_OK):
        skip("dex is not there: scripts/cluster-tools.sh dex builds it, with Go; or DOWNBURST_DEX names it")
    return found


@dataclass
class Dex:
    """A dex for one hub; `people`: groups by name."""

    directory: Path
    hub: str
    people: dict[str, list[str]]
    port: int = field(default_factory=free_port)

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}/dex"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Starts it with today's people, or again after a change of them."""
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = self.directory / "dex.yaml"
        settings.write_text(yaml.safe_dump(self._settings()))
        with (self.directory / "dex.log").open("ab") as log:
            self._process = subprocess.Popen([program(), "serve", str(settings)], stdout=log, stderr=log)
        running.note(self._process)
        wait_for("dex to be ready", self._is_ready, 60)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, (self.directory / "dex.log").read_text()
        try:
            return httpx.get(f"{self.issuer}/.well-known/openid-configuration", timeout=5).is_success
        except httpx.HTTPError:
            return False

    def _settings(self) -> dict[str, object]:
        client = {"id": CLIENT, "name": "Downburst", "secret": SECRET}
        client["redirectURIs"] = [f"{self.hub}/v1/session/oidc/callback"]  # type: ignore[assignment]
        return {
            "issuer": self.issuer,
            "storage": {"type": "memory"},
            "web": {"http": f"127.0.0.1:{self.port}"},
            "oauth2": {"skipApprovalScreen": True},
            "enablePasswordDB": True,
            "staticClients": [client],
            "staticPasswords": [self._person(name, groups) for name, groups in self.people.items()],
        }

    def _person(self, name: str, groups: list[str]) -> dict[str, object]:
        person = {"email": f"{name}@example.org", "hash": _HASH, "username": name, "preferredUsername": name}
        return {**person, "userID": f"id-of-{name}", "groups": groups}
