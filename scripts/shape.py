"""The shape of the code by numbers: sizes of files, functions, structs and folders, circles of imports.

    .venv/bin/python scripts/shape.py           prints the table
    .venv/bin/python scripts/shape.py --json    the same for programs
    .venv/bin/python scripts/shape.py --worst 20  the largest of each kind as well

`tests/golden/shape.json` has the limits; a test compares.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

from shapes import python, rust
from shapes.source import Sized, Source, circles

ROOT = Path(__file__).resolve().parents[1]
CRATES = ROOT / "workers" / "crates"
NOT_THE_PRODUCT = ("sim", "swarm", "hostile", "wire", "load")
"""Crates that only tests and measurements use."""


GENERATED, GENERATED_WITHIN = "\nGenerated ", 300
"""Stands at the beginning of a line of a module's docstring, within so many characters."""


def main() -> int:
    """Prints the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="name the N largest of each kind")
    options = parser.parse_args()
    counted = {"python": counts(python_sources(), "."), "rust": counts(rust_sources(), "::")}
    if options.json:
        print(json.dumps(counted, indent=2))
        return 0
    for language, figures in counted.items():
        print(language)
        print("\n".join(f"  {name:34}{value}" for name, value in figures.items() if not isinstance(value, list)))
    for sources in (python_sources(), rust_sources()) if options.worst else ():
        print("\n".join(worst(sources, options.worst)))
    return 0


def python_sources() -> list[Source]:
    """Every module of the product's packages that a person writes."""
    return [
        python.read(path, ROOT, package.parent)
        for package in packages()
        for path in sorted(package.rglob("*.py"))
        if GENERATED not in path.read_text()[:GENERATED_WITHIN]
    ]


def packages() -> list[Path]:
    """The folders of the product's Python packages."""
    found = (path.parent for path in ROOT.glob("*/downburst*/__init__.py"))
    return sorted(path for path in found if path.parent.name not in ("tests", "bench"))


def rust_sources() -> list[Source]:
    """Every module of the product's crates; files of unit tests apart."""
    return [
        rust.read(path, ROOT, crate)
        for crate in sorted(CRATES.iterdir())
        if crate.name not in NOT_THE_PRODUCT
        for path in sorted(set((crate / "src").rglob("*.rs")) - rust.test_files(crate))
        if not _is_test(path)
    ]


def counts(sources: list[Source], separator: str) -> dict[str, Any]:
    """The figures of one language."""
    functions = sorted(item.size for source in sources for item in source.functions)
    fields = [item.size for source in sources for item in source.types]
    folders = Counter(str(Path(source.path).parent) for source in sources)
    found = circles(graph(sources, separator))
    return {
        "files": len(sources),
        "lines": sum(source.lines for source in sources),
        "longest file": max(source.lines for source in sources),
        "files over 500 lines": sum(source.lines > 500 for source in sources),
        "functions": len(functions),
        "function, median": median(functions),
        "function, 90 %": functions[len(functions) * 9 // 10],
        "longest function": functions[-1],
        "functions over 50 lines": sum(size > 50 for size in functions),
        "most fields of a struct or class": max(fields),
        "structs or classes over 15 fields": sum(size > 15 for size in fields),
        "modules of the largest folder": max(folders.values()),
        "folders over 20 modules": sum(size > 20 for size in folders.values()),
        "circles of modules": len(found),
        "modules of the largest circle": len(found[0]) if found else 0,
    }


def graph(sources: list[Source], separator: str) -> dict[str, set[str]]:
    """Module to the modules that it imports; a name inside a module counts for the module, itself apart."""
    modules = {source.module for source in sources}
    edges: dict[str, set[str]] = {module: set() for module in modules}
    for source in sources:
        for name in source.imports:
            target = _module_of(name, modules, separator)
            if target and target != source.module:
                edges[source.module].add(target)
    return edges


def _module_of(name: str, modules: set[str], separator: str) -> str | None:
    while name not in modules:
        if separator not in name:
            return None
        name = name.rsplit(separator, 1)[0]
    return name


def worst(sources: list[Source], number: int) -> list[str]:
    """The largest files, functions, types and folders."""
    files = [Sized(source.path, source.lines) for source in sources]
    functions = [Sized(f"{source.path} {item.name}", item.size) for source in sources for item in source.functions]
    types = [Sized(f"{source.path} {item.name}", item.size) for source in sources for item in source.types]
    folders = [Sized(name, size) for name, size in Counter(str(Path(s.path).parent) for s in sources).items()]
    kinds = {"lines of a file": files, "lines of a function": functions, "fields": types, "modules": folders}
    return [
        f"{item.size:6} {kind:20} {item.name}"
        for kind, items in kinds.items()
        for item in sorted(items, key=lambda item: -item.size)[:number]
    ]


def _is_test(path: Path) -> bool:
    return "tests" in path.parts or path.stem.endswith("tests")


if __name__ == "__main__":
    sys.exit(main())
