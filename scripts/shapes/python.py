"""Python by its syntax tree."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from shapes.source import Sized, Source


def read(path: Path, root: Path, packages: Path) -> Source:
    """One file; its module is named from the folder that holds the package."""
    text = path.read_text()
    tree = ast.parse(text)
    module = ".".join(path.relative_to(packages).with_suffix("").parts).removesuffix(".__init__")
    source = Source(str(path.relative_to(root)), module, len(text.splitlines()))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            source.functions.append(Sized(node.name, _lines_of(node)))
        elif isinstance(node, ast.ClassDef):
            source.types.append(Sized(node.name, len(_attributes(node))))
    source.imports = set(_imports(tree))
    return source


def _lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """From `def` to the last line, without the docstring."""
    documented = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
    text = (documented.end_lineno or 0) - documented.lineno + 1 if documented else 0
    return (node.end_lineno or node.lineno) - node.lineno + 1 - text


def _attributes(node: ast.ClassDef) -> set[str]:
    """What an instance has: annotated names of the class, and what methods assign to `self`."""
    own = {
        item.target.id for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }
    methods = [item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
    return own | {name for method in methods for name in _assigned(method)}


def _assigned(method: ast.AST) -> Iterator[str]:
    for node in ast.walk(method):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name for target in targets for name in _own_names(target))


def _own_names(target: ast.expr) -> Iterable[str]:
    if isinstance(target, ast.Tuple):
        return [name for item in target.elts for name in _own_names(item)]
    is_own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    return [target.attr] if is_own and isinstance(target, ast.Attribute) else []


def _imports(tree: ast.Module) -> Iterator[str]:
    """Names of modules; `from a import b` gives both a and a.b, because b may be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)
