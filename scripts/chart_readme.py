"""Writes charts/downburst/README.md; its table of values comes from values.yaml and the comment above each value.

Run it after a change: `.venv/bin/python scripts/chart_readme.py`; with `--check` it only reports an outdated file.
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
    """Writes the file; with --check it only reports whether it is up to date."""
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
        if (words := re.match(r"^ *# ?(.*)", line)) is not None:
            comment.append(words[1])
            continue
        if (found := re.match(r"^( *)([A-Za-z]+):(?: (.*))?$", line)) is not None:
            depth = len(found[1]) // 2
            path = [*path[:depth], found[2]]
            if comment and (found[3] or depth == 0):
                yield Value(".".join(path), found[3] or "see values.yaml", " ".join(comment).replace("|", "\\|"))
        comment = []


HEAD = """\
# Downburst's Helm chart

This chart installs a hub in Kubernetes, as one process or as several on your own Kafka and PostgreSQL.

    helm install hub charts/downburst
    helm install hub charts/downburst --values charts/downburst/values-ha.yaml --set kafka.servers=k.example.edu:9093
    helm test hub

* *Secrets*: create them before the installation: the ledger's URL, the user's password at the brokers, the brokers'
  certificate authority, the mail server's URL. If one is missing, the installation is refused with a message.
* *Parts*: scheduler, latency service, circuit service and alarm service run inside the hub's pod. A number of
  replicas gives a part pods of its own beside the hub; this needs `ledger.existingSecret` and `kafka.servers`.
  `values-ha.yaml` runs two of each. Parts get `hub.settings`, as the hub does. Only the alarm service gets the mail
  server's URL, or the hub if no alarm service runs beside it.
* *Connections*: parts beside the hub accept none. All of them connect to ledger and brokers, the alarm service also
  to receivers (webhooks, Alertmanager, the mail server). A policy of your own on outgoing connections must permit
  this.
* *Upgrades* first update the ledger's schema, with a job that may run twice. A release that does not know the schema
  reports it.
* *Pods* meet the `restricted` Pod Security Standard. Only the pods of the hub and of senders may need more: the
  host's network (`multicast.hostNetwork`, `senders.hostNetwork`), capabilities for circuits (`hub.capabilities`,
  `senders.capabilities`). Nodes make circuits, also for a circuit service beside the hub.
* *Circuits of senders* begin on the network of the sender's pod, with `senders.hostNetwork` the host's. A port names
  the sender by its pod, such as `wx-downburst-sender-0`, and an interface of the host on which that pod must stay.
* *Multicast* is off unless `multicast.hostNetwork` or `multicast.podNetwork` is set. Feeds then use unicast, and
  plans show the reason.

## Values

`scripts/chart_readme.py` generates this table from `values.yaml`.

| value | default | meaning |
|---|---|---|
"""

if __name__ == "__main__":
    sys.exit(main())
