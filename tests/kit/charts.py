"""Helm on this repository's chart: rendered, or brought to an API server."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from kit.cluster_tools import tool

CHART = Path(__file__).resolve().parents[2] / "charts" / "downburst"
Object = dict[str, Any]


def helm(*arguments: str, kubeconfig: Path | None = None, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """Runs Helm; the test is skipped where it was not built."""
    environment = dict(os.environ) | ({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})
    argv = [tool("helm", kind="helm"), *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=timeout_s, env=environment)


def options(values: dict[str, str]) -> list[str]:
    """Values by their paths, as options of Helm; they are read as YAML."""
    return [word for name, value in values.items() for word in ("--set-json", f"{name}={value}")]


def rendered(values: dict[str, str] | None = None, *more: str) -> list[Object]:
    """The objects that the chart renders from its defaults and these values, which are in JSON."""
    done = helm(*TEMPLATE, "--namespace", "wx", *options(values or {}), *more)
    assert done.returncode == 0, done.stderr
    return [found for found in yaml.safe_load_all(done.stdout) if found]


def refusal(values: dict[str, str], *more: str) -> str:
    """Helm's message about values that the chart refuses."""
    done = helm(*TEMPLATE, *options(values), *more)
    assert done.returncode != 0, done.stdout
    return done.stderr


def one(objects: list[Object], kind: str, name: str) -> Object:
    """The object of this kind and name."""
    found = [item for item in objects if (item["kind"], item["metadata"]["name"]) == (kind, name)]
    assert len(found) == 1, [(item["kind"], item["metadata"]["name"]) for item in objects]
    return found[0]


def pod_template(item: Object) -> Object | None:
    """The pods that an object makes, if it makes any."""
    if item["kind"] == "Pod":
        return {"metadata": {}, "spec": item["spec"]}
    template: Object | None = item.get("spec", {}).get("template")
    return template


def leaves(values: Object, prefix: str = "") -> Iterator[str]:
    """The paths of all values; a value in Kubernetes' own format counts as one."""
    for name, value in values.items():
        path = f"{prefix}{name}"
        if isinstance(value, dict) and path not in OPEN_ENDED and not path.endswith("annotations"):
            yield from leaves(value, f"{path}.")
        else:
            yield path


# A Helm that was built from its modules alone assumes a cluster version that is years old.
TEMPLATE = ("template", "wx", str(CHART), "--kube-version", "1.31.0")
OPEN_ENDED = {"hub.settings", "resources", "parts.resources", "nodeSelector", "monitoring.serviceMonitor.labels"}
