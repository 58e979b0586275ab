"""Holds every package that is installed or built in to the licences that workers/deny.toml allows; needs no network.

    python scripts/licences.py             of .venv, of the page's package-lock.json, of the crates that are built
    python scripts/licences.py --list      prints them all

Ends with 0 if all are allowed, with 1 otherwise, with a line for each that is not.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path


@dataclass(frozen=True, order=True)
class Package:
    """A package of others, and the licence that it names: an SPDX expression, or what its authors wrote instead."""

    kind: str
    name: str
    version: str
    licence: str


class UnreadableLicenceError(ValueError):
    """No SPDX expression."""


def main() -> int:
    """Judges all packages, and tells how many of each kind there are."""
    options = _options()
    allowed = frozenset(tomllib.loads(options.deny.read_text())["licenses"]["allow"])
    packages = sorted({*_of_python(options.site_packages), *_of_npm(options.lock), *_of_crates(options.cargo)})
    bad = [sentence for package in packages if (sentence := complaint(package, allowed))]
    for package in packages if options.list else ():
        print(f"{package.kind:6} {package.name} {package.version}: {package.licence}")
    print("\n".join(bad), file=sys.stderr, end="\n" if bad else "")
    counts = {kind: sum(package.kind == kind for package in packages) for kind in ("python", "npm", "crate")}
    print(f"licences: {', '.join(f'{count} {kind}' for kind, count in counts.items())}; {len(bad)} not allowed")
    if missing := [kind for kind, count in counts.items() if not count]:
        print(f"no package of kind {missing[0]} was found; run make setup-test first", file=sys.stderr)
    return 1 if bad or missing else 0


def complaint(package: Package, allowed: frozenset[str]) -> str | None:
    """What is wrong with the licence of a package, if anything is."""
    if EXCEPTIONS.get((package.kind, package.name), ("", ""))[0] == package.licence:
        return None
    where = f"{package.kind} {package.name} {package.version}"
    try:
        if is_allowed(package.licence, allowed):
            return None
    except UnreadableLicenceError:
        return f"{where}: {package.licence[:80]!r} is no SPDX expression; read it, then add it to NAMES or EXCEPTIONS"
    return f"{where}: {package.licence} is not allowed; take another package, or decide on it in workers/deny.toml"


def is_allowed(expression: str, allowed: frozenset[str]) -> bool:
    """Whether one of the choices that an SPDX expression leaves is allowed."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    found, rest = _either(tokens, allowed)
    if rest:
        raise UnreadableLicenceError(expression)
    return found


def _either(tokens: list[str], allowed: frozenset[str]) -> tuple[bool, list[str]]:
    found, tokens = _both(tokens, allowed)
    while tokens[:1] == ["OR"]:
        more, tokens = _both(tokens[1:], allowed)
        found = found or more
    return found, tokens


def _both(tokens: list[str], allowed: frozenset[str]) -> tuple[bool, list[str]]:
    found, tokens = _one(tokens, allowed)
    while tokens[:1] == ["AND"]:
        more, tokens = _one(tokens[1:], allowed)
        found = found and more
    return found, tokens


def _one(tokens: list[str], allowed: frozenset[str]) -> tuple[bool, list[str]]:
    if tokens[:1] == ["("]:
        found, rest = _either(tokens[1:], allowed)
        if rest[:1] != [")"]:
            raise UnreadableLicenceError(")")
        return found, rest[1:]
    if not tokens or not re.fullmatch(r"[A-Za-z0-9.+-]+", tokens[0]) or tokens[0] in ("AND", "OR", "WITH"):
        raise UnreadableLicenceError(" ".join(tokens))
    if tokens[1:2] == ["WITH"]:
        return " ".join(tokens[:3]) in allowed, tokens[3:]
    return tokens[0] in allowed, tokens[1:]


def _of_python(site_packages: Path) -> Iterator[Package]:
    for found in distributions(path=[str(site_packages)]):
        yield Package("python", found.metadata["Name"].lower(), found.version, _python_licence(found))


def _python_licence(found: Distribution) -> str:
    metadata = found.metadata
    if expression := metadata.get("License-Expression"):
        return expression
    classifiers = [text for text in metadata.get_all("Classifier") or () if text.startswith("License ::")]
    named = [NAMES.get(text.rpartition(":: ")[2], text) for text in classifiers]
    return " AND ".join(named) or (metadata.get("License") or "none").strip().partition("\n")[0]


def _of_npm(lock: Path) -> Iterator[Package]:
    for place, package in json.loads(lock.read_text())["packages"].items():
        name = place.rpartition("node_modules/")[2]
        if name:
            yield Package("npm", name, package["version"], package.get("license", "none"))


def _of_crates(metadata: Path | None) -> Iterator[Package]:
    text = metadata.read_text() if metadata else _cargo_metadata()
    for package in json.loads(text)["packages"]:
        if package["source"]:
            yield Package("crate", package["name"], package["version"], package["license"] or "none")


def _cargo_metadata() -> str:
    """Of this platform: crates of others were never downloaded."""
    version = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    host = next(line.split()[1] for line in version.splitlines() if line.startswith("host:"))
    command = ["cargo", "metadata", "--offline", "--locked", "--format-version", "1", "--filter-platform", host]
    command += ["--manifest-path", str(ROOT / "workers" / "Cargo.toml")]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Holds packages to the licences that are allowed.")
    parser.add_argument("--list", action="store_true", help="print every package with its licence")
    parser.add_argument("--deny", type=Path, default=ROOT / "workers" / "deny.toml", help="file with the list")
    parser.add_argument(
        "--site-packages", type=Path, default=Path(SITE_PACKAGES), help="where packages of Python lie"
    )
    parser.add_argument("--lock", type=Path, default=ROOT / "services" / "dashboard" / "package-lock.json")
    parser.add_argument("--cargo", type=Path, help="what cargo metadata printed; asked anew if left out")
    return parser.parse_args()


ROOT = Path(__file__).resolve().parents[1]
SITE_PACKAGES = next((path for path in sys.path if path.endswith("site-packages")), "")
NAMES = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""SPDX's identifiers of what classifiers on PyPI call them."""
EXCEPTIONS = {
    ("python", "docutils"): (
        "License :: Public Domain AND BSD-3-Clause AND License :: OSI Approved :: GNU General Public License (GPL)",
        "builds the documentation, no part of the product; its one file under the GPL, for Emacs, is not installed",
    ),
    ("python", "psycopg"): (
        "LGPL-3.0-only",
        "a library of its own that the hub imports as it is, and that users can replace",
    ),
    ("python", "psycopg-binary"): ("LGPL-3.0-only", "as psycopg"),
    ("npm", "@fontsource-variable/inter"): ("OFL-1.1", "a font, bundled unchanged with the page"),
    ("npm", "svelte-toolbelt"): ("none", "MIT by its file LICENSE; package.json names none"),
}
"""Licence and reason of packages that are allowed with a licence that others may not have."""

if __name__ == "__main__":
    sys.exit(main())
