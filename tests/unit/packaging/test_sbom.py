"""The bill of materials names everything that the lock files name, once, with its digests."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
VALIDATING = ROOT / ".cache" / "sbom" / "bin" / "python"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("sbom") / "a.cdx.json")


@pytest.fixture(scope="module")
def document(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text()))


def test_every_crate_of_the_lock_is_there_with_its_digest(document: dict[str, Any]) -> None:
    found = {one["purl"]: one for one in document["components"]}
    crates = [crate for crate in lock_of_crates() if "source" in crate]
    assert len(crates) > 100
    for crate in crates:
        component = found[f"pkg:cargo/{crate['name']}@{crate['version'].replace('+', '%2B')}"]
        assert component["hashes"] == [{"alg": "SHA-256", "content": crate["checksum"]}]


def test_every_package_that_a_hub_runs_with_is_there(document: dict[str, Any]) -> None:
    lines = (ROOT / "requirements-image.lock").read_text().splitlines()
    pinned = [line.split("==")[0] for line in lines if "==" in line and line[0].isalpha()]
    named = {one["name"] for one in document["components"] if one["purl"].startswith("pkg:pypi/")}
    assert named == set(pinned)


def test_every_package_of_the_page_is_there(document: dict[str, Any]) -> None:
    lock = json.loads((ROOT / "services" / "dashboard" / "package-lock.json").read_text())
    wanted = {(name.rpartition("node_modules/")[2], one["version"]) for name, one in lock["packages"].items() if name}
    npm = [one for one in document["components"] if one["purl"].startswith("pkg:npm/")]
    assert {(one["name"], one["version"]) for one in npm} == wanted
    assert {one["name"] for one in npm if "properties" not in one} >= {"uplot", "swagger-ui-dist"}


def test_nothing_is_named_twice_and_whatever_is_needed_is_named(document: dict[str, Any]) -> None:
    references = [one["bom-ref"] for one in document["components"]]
    assert len(references) == len(set(references))
    assert {ref for one in document["dependencies"] for ref in one["dependsOn"]} == set(references)
    needs = {one["ref"]: one["dependsOn"] for one in document["dependencies"]}
    rustls = next(ref for ref in references if ref.startswith("pkg:cargo/rustls@"))
    assert any(ref.startswith("pkg:cargo/ring@") for ref in needs[rustls])


def test_the_same_locks_make_the_same_document(file: Path, tmp_path: Path) -> None:
    assert made(tmp_path / "again.cdx.json").read_bytes() == file.read_bytes()


def test_a_broken_document_is_refused(document: dict[str, Any], tmp_path: Path) -> None:
    part = document | {"components": document["components"][:3], "dependencies": []}
    small = tmp_path / "small.cdx.json"
    small.write_text(json.dumps(part))
    assert validated(small).returncode == 0
    small.write_text(small.read_text().replace('"type": "library"', '"type": "book"', 1))
    assert "is no CycloneDX document" in validated(small).stderr


def made(out: Path) -> Path:
    command = [sys.executable, str(ROOT / "scripts" / "sbom.py"), str(out)]
    subprocess.run(command, check=True, env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}, capture_output=True)
    return out


def validated(file: Path) -> subprocess.CompletedProcess[str]:
    if not VALIDATING.exists():
        pytest.skip("CycloneDX's library is not in .cache/sbom; make sbom puts it there")
    command = [str(VALIDATING), str(ROOT / "scripts" / "validate_sbom.py"), str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def lock_of_crates() -> list[dict[str, Any]]:
    return list(tomllib.loads((ROOT / "workers" / "Cargo.lock").read_text())["package"])
