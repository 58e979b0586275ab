"""The settings of a provider: complete, by HTTPS, with roles that exist; else one sentence."""

from pathlib import Path

import pytest

from downburst.foundation.errors import BadSettings
from downburst.settings.hub import load_settings

GOOD = "issuer = 'https://login.example'\nclient_id = 'hub'\n"
ROLES = "[access.oidc.roles]\noperators = 'operator'\n'/sites/unl' = 'site:unl.edu'\n"


def test_a_provider_is_configured_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    file.write_text(f"[access.oidc]\n{GOOD}client_secret_file = '{secret}'\nscopes = ['openid', 'groups']\n{ROLES}")
    oidc = load_settings(file).access.oidc
    assert (oidc.issuer, oidc.client_id, oidc.scopes) == ("https://login.example", "hub", ("openid", "groups"))
    assert oidc.grants["/sites/unl"].site == "unl.edu"
    assert (oidc.name_claim, oidc.groups_claim, oidc.session_hours) == ("preferred_username", "groups", 12.0)


def test_without_an_issuer_there_is_none() -> None:
    assert load_settings().access.oidc.issuer == ""


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("issuer = 'https://login.example'\n" + ROLES, "client_id"),
        (GOOD, "needs roles by group"),
        (GOOD.replace("https", "http") + ROLES, "no address by HTTPS"),
        (GOOD.replace("login.example", "u@login.example") + ROLES, "has a user"),
        (GOOD + ROLES.replace("'operator'", "'king'"), "no role of a group"),
        (GOOD + "scopes = ['profile']\n" + ROLES, "need openid"),
        (GOOD + "scopes = ['openid', 'a b']\n" + ROLES, "pattern"),
        (GOOD + "leeway_s = 3600\n" + ROLES, "300"),
        (GOOD + "client_secret_file = '/nowhere/secret'\n" + ROLES, "no secret that can be read"),
        (GOOD + "ca_file = '/nowhere/ca.pem'\n" + ROLES, "no certificates in PEM"),
        (GOOD + "public_url = 'hub.example'\n" + ROLES, "no address by HTTPS"),
    ],
)
def test_a_bad_provider_is_one_sentence(tmp_path: Path, text: str, part: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(f"[access.oidc]\n{text}")
    with pytest.raises(BadSettings) as refused:
        load_settings(file)
    assert part in refused.value.sentence
    assert "\n" not in refused.value.sentence


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:8080", "[::1]:8080"])
def test_plain_http_is_for_this_machine(tmp_path: Path, host: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(f"[access.oidc]\nissuer = 'http://{host}/dex'\nclient_id = 'hub'\n{ROLES}")
    assert load_settings(file).access.oidc.issuer.startswith("http://")
