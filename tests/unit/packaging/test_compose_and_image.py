"""Checks of docker-compose.yml, the Dockerfile and the lock files that need no Docker engine."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from downburst.parts.names import parts_apart
from downburst.settings.hub import load_settings

ROOT = Path(__file__).resolve().parents[3]
SITES = ("site-a", "site-b", "site-c")
PARTS = ("scheduler", "latency-service", "circuit-service", "alarm-service")
PROFILES = ("release", "debug")
BUILT = {
    "services/dashboard/dist",
    *(f"workers/target/{profile}/downburst-node{rest}" for profile in PROFILES for rest in ("", "-kafka")),
}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return loaded


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose["services"]
    return found


def test_all_of_ours_run_the_same_image_and_servers_public_ones(services: dict[str, dict[str, Any]]) -> None:
    ours = {name for name, service in services.items() if service["image"] == "downburst:local"}
    assert ours == {"migrate", "hub", *PARTS, "sender", "enrol", "source", *SITES}
    assert {services[name]["build"] for name in ours} == {"."}
    assert {name: service["image"] for name, service in services.items() if name not in ours} == {
        "kafka": "apache/kafka:4.1.1",
        "ledger": "postgres:15-bookworm",
    }


def test_parts_are_told_alike_what_the_hub_is_told(services: dict[str, dict[str, Any]]) -> None:
    told = services["hub"]["environment"]
    for part in ("migrate", *PARTS):
        assert services[part]["environment"] == told
        assert "volumes" not in services[part], "ledger and brokers are all that a part knows"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in told.items():
            patch.setenv(name, str(value))
        settings = load_settings()
    assert settings.kafka.products == "ingest"
    apart = [part.command for part in parts_apart(settings)]
    assert apart == list(PARTS), "each part that the hub leaves to another process has one"
    for part in PARTS:
        assert services[part]["command"] == ["downburst", part]


def test_the_sender_is_told_what_the_hub_is_told_and_its_own_place(services: dict[str, dict[str, Any]]) -> None:
    told = services["sender"]["environment"]
    own = {name: value for name, value in told.items() if services["hub"]["environment"].get(name) != value}
    address = services["sender"]["networks"]["downburst"]["ipv4_address"]
    assert own == {
        "DOWNBURST_SENDER__NAME": "sender",
        "DOWNBURST_SENDER__PUBLIC": "sender:7370",
        "DOWNBURST_MULTICAST__INTERFACE": address,
    }
    assert told.keys() >= services["hub"]["environment"].keys()
    assert address != services["hub"]["networks"]["downburst"]["ipv4_address"]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in told.items():
            patch.setenv(name, str(value))
        assert load_settings().sender.public == "sender:7370"


def test_what_services_use_is_declared(compose: dict[str, Any], services: dict[str, dict[str, Any]]) -> None:
    used = {mount.split(":")[0] for service in services.values() for mount in service.get("volumes", [])}
    assert used == set(compose["volumes"])
    for service in services.values():
        assert set(service["networks"]) <= set(compose["networks"])
        assert set(service.get("depends_on", {})) <= set(services)


def test_services_start_after_what_they_need(services: dict[str, dict[str, Any]]) -> None:
    hub = {"kafka": {"condition": "service_healthy"}, "migrate": {"condition": "service_completed_successfully"}}
    assert services["hub"]["depends_on"] == hub
    for part in ("enrol", *PARTS, "sender"):
        assert services[part]["depends_on"] == {"hub": {"condition": "service_healthy"}}
    assert services["enrol"]["restart"] == "no"
    for site in SITES:
        assert services[site]["depends_on"] == {"enrol": {"condition": "service_completed_successfully"}}


def test_only_the_page_is_published_and_only_to_this_machine(services: dict[str, dict[str, Any]]) -> None:
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert published == {"hub": ["127.0.0.1:${DOWNBURST_HTTP_PORT:-7371}:7371"]}


def test_each_site_reads_the_token_that_enrol_writes(services: dict[str, dict[str, Any]]) -> None:
    script = services["enrol"]["command"][-1]
    assert services["enrol"]["volumes"] == ["hub:/hub:ro", "tokens:/var/lib/downburst-tokens"]
    assert "cd /var/lib/downburst-tokens" in script
    for site in SITES:
        assert site in script
        assert f"/tokens/{site}" in services[site]["command"]
        assert "tokens:/tokens:ro" in services[site]["volumes"]


@pytest.mark.parametrize("name", ["hub", "sender"])
def test_groups_leave_by_the_address_that_their_sender_has(compose: dict[str, Any], name: str) -> None:
    service = compose["services"][name]
    address = service["networks"]["downburst"]["ipv4_address"]
    assert service["environment"]["DOWNBURST_MULTICAST__INTERFACE"] == address
    network = address.rsplit(".", 1)[0]
    # Automatic assignment never hands out this address.
    pool = {"subnet": f"{network}.0/24", "ip_range": f"{network}.128/25"}
    assert compose["networks"]["downburst"]["ipam"]["config"] == [pool]


def test_the_smoke_test_kills_every_part() -> None:
    script = (ROOT / "scripts" / "compose-smoke.sh").read_text()
    assert re.findall(r"^PARTS=\((.*)\)$", script, re.MULTILINE) == [" ".join(PARTS)]
    (killed,) = re.findall(r"^KILLED=\((.*)\)$", script, re.MULTILINE)
    assert '"${PARTS[@]}"' in killed


def test_the_bundle_for_machines_without_network_has_what_compose_names() -> None:
    script = (ROOT / "scripts" / "compose-smoke.sh").read_text()
    without_build, images = re.findall(r"sed (?:-n )?'([^']+)' docker-compose.yml", script)
    bundled = yaml.safe_load(run("sed", without_build))
    assert not [name for name, service in bundled["services"].items() if "build" in service]
    named = {service["image"] for service in bundled["services"].values()}
    assert named <= set(run("sed", "-n", images).split())
    assert (ROOT / "docs" / "air-gap.md").is_file()


def test_what_the_image_copies_exists_and_is_not_ignored() -> None:
    admitted = [line[1:] for line in lines_of(".dockerignore") if line.startswith("!")]
    written = [source for line in lines_of("Dockerfile") for source in copied_sources(line)]
    copied = {source.replace("${PROFILE}", profile) for source in written for profile in PROFILES}
    assert copied
    for source in copied:
        # A source that a build creates may be absent on this machine.
        assert (ROOT / source).exists() or source in BUILT, source
        assert any(source == name or source.startswith(f"{name}/") for name in admitted), source


def test_the_image_needs_no_frontend_of_its_own_and_drops_root() -> None:
    lines = lines_of("Dockerfile")
    assert not [line for line in lines if line.startswith("# syntax")]
    assert "USER downburst" in lines
    assert lines.index("USER downburst") < lines.index('CMD ["downburst", "hub"]')


@pytest.mark.parametrize("extra", ["requirements-image.lock", "requirements-build.lock", "requirements-docs.lock"])
def test_the_locks_agree(extra: str) -> None:
    versions = locked("requirements.lock") | locked("requirements-build.lock")
    assert locked(extra).items() <= versions.items()


@pytest.mark.parametrize(
    "lock",
    [
        "requirements.lock",
        "requirements-image.lock",
        "requirements-build.lock",
        "requirements-docs.lock",
        "services/dashboard/package-lock.json",
        ".npmrc",
        "services/dashboard/.npmrc",
        "pyproject.toml",
    ],
)
def test_no_lock_or_setting_names_where_packages_come_from(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert '"resolved"' not in text
    # The first lines of a Python lock repeat the command that made it.
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    assert not re.search(r"index-url|find-links|registry *=|https?://\S*(pypi|npmjs|/simple)", body)


def test_the_lock_of_the_page_names_the_packages_of_every_platform() -> None:
    packages = json.loads((ROOT / "services/dashboard/package-lock.json").read_text())["packages"]
    named = {path.rsplit("node_modules/", 1)[-1] for path in packages}
    optional = {name for package in packages.values() for name in package.get("optionalDependencies", {})}
    assert len(optional) > 20
    assert optional - named == set(), "npm ci refuses a lock that lacks them; pin a version that is complete"


def run(*argv: str) -> str:
    done = subprocess.run([*argv, ROOT / "docker-compose.yml"], capture_output=True, text=True, check=True)
    return done.stdout


def lines_of(name: str) -> list[str]:
    return [line.strip() for line in (ROOT / name).read_text().splitlines() if line.strip()]


def copied_sources(line: str) -> list[str]:
    words = line.split()
    if words[0] != "COPY" or words[1].startswith("--from"):
        return []
    return [word.rstrip("/") for word in words[1:-1]]


def locked(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==([^ \\]+)", (ROOT / name).read_text(), re.MULTILINE))
