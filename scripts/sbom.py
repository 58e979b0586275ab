"""Writes what Downburst is built from as one CycloneDX document, out of the lock files.

Crates, packages of Python, and packages of npm:

    python scripts/sbom.py dist/downburst-0.1.0.cdx.json

The same lock files make the same document: its time is that of the commit (SOURCE_DATE_EPOCH), its number a digest.
"""

import base64
import json
import os
import re
import sys
import time
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

Component = dict[str, Any]


def main() -> int:
    """Writes the document to the file that is named."""
    out = Path(sys.argv[1])
    out.parent.mkdir(parents=True, exist_ok=True)
    made = document()
    out.write_text(json.dumps(made, indent=1) + "\n")
    print(f"{out}: {len(made['components'])} components")
    return 0


def document() -> dict[str, Any]:
    """All components by their package URLs, and what crates need of each other."""
    crates, needs = crates_of(ROOT / "workers" / "Cargo.lock")
    listed = [*crates, *python_of(ROOT / "requirements-image.lock"), *npm_of(NPM_LOCK)]
    components = sorted({one["bom-ref"]: one for one in listed}.values(), key=lambda one: str(one["bom-ref"]))
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    # A workspace's own crates are parts of Downburst, and not components of others.
    known = {one["bom-ref"] for one in components}
    graph = [{"ref": "downburst", "dependsOn": sorted(known)}]
    graph += [{"ref": ref, "dependsOn": sorted(needs[ref] & known)} for ref in sorted(needs.keys() & known)]
    made: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime(
                "%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
            ),
            "component": {"type": "application", "bom-ref": "downburst", "name": "downburst", "version": version},
        },
        "components": components,
        "dependencies": graph,
    }
    return made | {"serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(made, sort_keys=True)).urn}


def crates_of(*locks: Path) -> tuple[list[Component], dict[str, set[str]]]:
    """Crates of registries in lock files, and which crates each of them needs."""
    components, needs = [], {}
    for lock in locks:
        packages = tomllib.loads(lock.read_text())["package"]
        versions: dict[str, list[str]] = {}
        for package in packages:
            versions.setdefault(package["name"], []).append(package["version"])
        for package in packages:
            if "source" not in package:
                continue
            found = _component("cargo", package["name"], package["version"])
            found["hashes"] = [{"alg": "SHA-256", "content": package["checksum"]}]
            components.append(found)
            # "name" where a lock has one version of it, "name version" where it has several.
            named = [text.split()[:2] for text in package.get("dependencies", ())]
            needs[found["bom-ref"]] = {
                _purl("cargo", words[0], words[1] if len(words) > 1 else versions[words[0]][0]) for words in named
            }
    return components, needs


def python_of(lock: Path) -> Iterator[Component]:
    """Packages that a hub runs with; each file of a package has a digest of its own."""
    for name, version, hashes in re.findall(
        r"^([\w.-]+)==(\S+)((?: \\\n +--hash=\S+)+)", lock.read_text(), re.MULTILINE
    ):
        found = _component("pypi", re.sub(r"[-_.]+", "-", name).lower(), version)
        digests = re.findall(r"sha256:([0-9a-f]{64})", hashes)
        page = f"https://pypi.org/project/{name}/{version}/"
        listed = [{"alg": "SHA-256", "content": one} for one in digests]
        found["externalReferences"] = [{"type": "distribution", "url": page, "hashes": listed}]
        yield found


def npm_of(lock: Path) -> Iterator[Component]:
    """Packages that the page is built with; the page holds some of them."""
    for place, package in json.loads(lock.read_text())["packages"].items():
        name = place.rpartition("node_modules/")[2]
        if not name:
            continue
        found = _component("npm", name, package["version"])
        algorithm, _, digest = package["integrity"].partition("-")
        content = base64.b64decode(digest).hex()
        found["hashes"] = [{"alg": {"sha512": "SHA-512", "sha1": "SHA-1"}[algorithm], "content": content}]
        if package.get("dev"):
            found["properties"] = [{"name": "downburst:use", "value": "build"}]
        yield found


def _component(kind: str, name: str, version: str) -> Component:
    purl = _purl(kind, name, version)
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _purl(kind: str, name: str, version: str) -> str:
    return f"pkg:{kind}/{quote(name)}@{quote(version)}"


ROOT = Path(__file__).resolve().parents[1]
NPM_LOCK = ROOT / "services" / "dashboard" / "package-lock.json"

if __name__ == "__main__":
    sys.exit(main())
