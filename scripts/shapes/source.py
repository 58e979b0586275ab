"""What is counted of a source file, whatever its language."""

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sized:
    """A function with its lines, or a struct or class with its fields."""

    name: str
    size: int


@dataclass
class Source:
    """One file of the product."""

    path: str
    module: str
    lines: int
    functions: list[Sized] = field(default_factory=list)
    types: list[Sized] = field(default_factory=list)
    imports: set[str] = field(default_factory=set)
    """Modules of the product, as dotted names; the reader resolves relative ones."""


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module, largest first (Tarjan's algorithm, iterative)."""
    state = _Walk(graph)
    for node in graph:
        if node not in state.index:
            state.from_node(node)
    return sorted((sorted(found) for found in state.found if len(found) > 1), key=lambda found: (-len(found), found))


class _Walk:
    def __init__(self, graph: dict[str, set[str]]) -> None:
        self.graph = graph
        self.index: dict[str, int] = {}
        self.low: dict[str, int] = {}
        self.stack: list[str] = []
        self.found: list[list[str]] = []

    def from_node(self, root: str) -> None:
        pending = [(root, self._enter(root))]
        while pending:
            node, neighbours = pending[-1]
            following = next(neighbours, None)
            if following is None:
                pending.pop()
                self._leave(node, pending[-1][0] if pending else None)
            elif following not in self.index:
                pending.append((following, self._enter(following)))
            elif following in self.stack:
                self.low[node] = min(self.low[node], self.index[following])

    def _enter(self, node: str) -> Iterator[str]:
        self.index[node] = self.low[node] = len(self.index)
        self.stack.append(node)
        return iter(sorted(self.graph.get(node, set()) & self.graph.keys()))

    def _leave(self, node: str, parent: str | None) -> None:
        if parent is not None:
            self.low[parent] = min(self.low[parent], self.low[node])
        if self.low[node] == self.index[node]:
            at = self.stack.index(node)
            self.found.append(self.stack[at:])
            del self.stack[at:]
