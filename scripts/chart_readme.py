"""Makes charts/downburst/README.md: the table of values is made of values.yaml and of the sentences above each value.

Run it after a change: `.venv/bin/python scripts/chart_readme.py`; with `--check` it only says whether it is needed.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHART = Path(__file__).resolve().parents[1] / "charts" / "downburst"


@dataclass(frozen=True, slots=True)
class Value:
    """One row of the table."""

    name: str
    default: str
    sentence: str


def main() -> int:
    """Writes the file; with --check only says whether it is up to date."""
    text = readme(CHART)
    file = CHART / "README.md"
    if "--check" in sys.argv[1:]:
        return 0 if file.read_text() == text else 1
    file.write_text(text)
    return 0


def readme(chart: Path) -> str:
    """The whole file."""
    rows = (
        f"| `{value.name}` | `{value.default}` | {value.sentence} |"
        for value in values((chart / "values.yaml").read_text())
    )
    return HEAD + "\n".join(rows) + "\n"


def values(text: str) -> Iterator[Value]:
    """Every value with the comment above it, in the order of the file; a value of Kubernetes' own form is one."""
    path: list[str] = []
    comment: list[str] = []
    for line in text.splitlines():
        if (said := re.match(r"^ *# ?(.*)", line)) is not None:
            comment.append(said[1])
            continue
        if (found := re.match(r"^( *)([A-Za-z]+):(?: (.*))?$", line)) is not None:
            depth = len(found[1]) // 2
            path = [*path[:depth], found[2]]
            if comment and (found[3] or depth == 0):
                yield Value(".".join(path), found[3] or "see values.yaml", " ".join(comment).replace("|", "\\|"))
        comment = []


HEAD = """\
# Downburst's chart

Installs a hub in Kubernetes, alone or in several processes on a Kafka and a PostgreSQL of yours.

    helm install hub charts/downburst
    helm install hub charts/downburst --values charts/downburst/values-ha.yaml --set kafka.servers=k.example.edu:9093
    helm test hub

* *Secrets* are yours and exist before: the ledger's URL, the user's password at the brokers, their authority. An
  installation that lacks one is refused in a sentence.
* *Upgrades* bring the ledger's schema up to date first, by a job that may run twice; a release that does not know the
  schema says so.
* *Pods* keep to the standard `restricted`. The hub's alone may ask for more: the host's network for multicast
  (`multicast.hostNetwork`), capabilities for circuits (`hub.capabilities`).
* *Multicast* is off without `multicast.hostNetwork` (or `multicast.podNetwork`): feeds go by unicast then, and plans
  say why.

## Values

This table is made of `values.yaml` by `scripts/chart_readme.py`.

| value | default | |
|---|---|---|
"""

if __name__ == "__main__":
    sys.exit(main())
