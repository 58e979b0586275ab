"""Keycloak on this machine: one realm with people in groups, made by its REST interface.

keycloak/                     an unpacked distribution, in the directory that DOWNBURST_PEERS names
"""

import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx

from kit import running
from kit.patience import wait_for
from kit.peers.found import prepared
from kit.ports import free_port

REALM, CLIENT, SECRET, PASSWORD = "weather", "downburst", "secret of the hub", "four words are long"
ADMIN = {"username": "admin", "password": "of this run alone"}


@dataclass
class Keycloak:
    """A Keycloak for one hub; `people`: paths of groups by name."""

    directory: Path
    hub: str
    people: dict[str, list[str]]
    port: int = field(default_factory=free_port)

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}/realms/{REALM}"

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True)
        (program,) = prepared("keycloak/bin/kc.sh")
        argv = [str(program), "start-dev", "--db=dev-mem", "--http-host=127.0.0.1", f"--http-port={self.port}"]
        named = {f"KC_BOOTSTRAP_ADMIN_{name.upper()}": value for name, value in ADMIN.items()}
        environment = {**os.environ, **named, "JAVA_OPTS_KC_HEAP": "-Xmx512m"}
        with (self.directory / "keycloak.log").open("wb") as log:
            # The script starts Java as its child: both are in a group of their own, to be ended together.
            self._process = subprocess.Popen(argv, stdout=log, stderr=log, env=environment, start_new_session=True)
        running.note(self._process)
        wait_for("Keycloak to be ready", self._is_ready, 600)
        self._ask("POST", "admin/realms", json=self._realm())
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait(timeout=60)

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, (self.directory / "keycloak.log").read_text()
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/realms/master", timeout=5).is_success
        except httpx.HTTPError:
            return False

    def _ask(self, method: str, path: str, **request: Any) -> None:
        base, form = f"http://127.0.0.1:{self.port}", {"grant_type": "password", "client_id": "admin-cli"} | ADMIN
        token = httpx.post(f"{base}/realms/master/protocol/openid-connect/token", data=form, timeout=60)
        headers = {"Authorization": f"Bearer {token.json()['access_token']}"}
        answer = httpx.request(method, f"{base}/{path}", headers=headers, timeout=120, **request)
        assert answer.is_success, answer.text

    def _realm(self) -> dict[str, object]:
        paths = sorted({path for groups in self.people.values() for path in groups})
        children = [{"name": path.removeprefix("/downburst/")} for path in paths]
        return {
            "realm": REALM,
            "enabled": True,
            "groups": [{"name": "downburst", "subGroups": children}],
            "clients": [self._client()],
            "users": [_person(name, groups) for name, groups in self.people.items()],
        }

    def _client(self) -> dict[str, object]:
        claim = {"claim.name": "groups", "full.path": "true", "id.token.claim": "true"}
        mapper = {"name": "groups", "protocol": "openid-connect", "config": claim}
        return {
            "clientId": CLIENT,
            "secret": SECRET,
            "redirectUris": [f"{self.hub}/v1/session/oidc/callback"],
            "attributes": {"post.logout.redirect.uris": f"{self.hub}/", "pkce.code.challenge.method": "S256"},
            "protocolMappers": [{**mapper, "protocolMapper": "oidc-group-membership-mapper"}],
        }


def _person(name: str, groups: list[str]) -> dict[str, object]:
    names = {"username": name, "firstName": name, "lastName": "Example", "email": f"{name}@example.org"}
    password = {"type": "password", "value": PASSWORD, "temporary": False}
    return {**names, "enabled": True, "emailVerified": True, "groups": groups, "credentials": [password]}
