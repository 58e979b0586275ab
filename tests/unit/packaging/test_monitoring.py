"""Files for Prometheus and Grafana: promtool reads them, their metrics exist, and Grafana's own rules hold."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from downburst.exposition import CATALOGUE, Kind, Metric
from kit.board import FILE, board, questions
from kit.prometheus import ROOT, program
from unit.packaging.metrics_table import SIZES, markdown

MONITORING = ROOT / "monitoring"
ALL = {metric.name: metric for metrics in CATALOGUE.values() for metric in metrics}


def promtool(*argv: str) -> None:
    done = subprocess.run([program("promtool"), *argv], capture_output=True, text=True, cwd=MONITORING, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_are_good_and_fire_when_they_should() -> None:
    promtool("check", "rules", "downburst.rules.yml")
    promtool("test", "rules", "downburst.rules.test.yml")


def test_every_rule_is_tested() -> None:
    names = re.findall(r"(?:alert|record): (\S+)", (MONITORING / "downburst.rules.yml").read_text())
    tests = (MONITORING / "downburst.rules.test.yml").read_text()
    assert [name for name in names if not re.search(rf"(alertname|expr): {re.escape(name)}$", tests, re.M)] == []


def test_grafana_asks_what_prometheus_can_read(tmp_path: Path) -> None:
    rules = [{"record": f"panel:{number}", "expr": expr} for number, (_, expr) in enumerate(questions())]
    file = tmp_path / "panels.yml"
    # JSON is YAML, too.
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", str(file))


def test_everything_asked_for_is_a_metric_and_the_board_needs_no_rules() -> None:
    asked = "\n".join(question for _, question in questions())
    assert "downburst:" not in asked
    asked += (MONITORING / "downburst.rules.yml").read_text()
    for name in set(re.findall(r"\bdownburst_\w+", asked)):
        assert re.sub(r"_(bucket|sum|count)$", "", name) in ALL or name in ALL, name


@pytest.mark.parametrize("metric", ALL.values(), ids=lambda metric: metric.name)
def test_names_follow_the_conventions(metric: Metric) -> None:
    # Those of WIS2's hierarchy have its names.
    assert re.fullmatch(r"(downburst|wmo_wis2)(_[a-z]+)+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER)
    base = re.search(r"_(seconds|bytes)(_per_second)?(_total)?$", metric.name)
    assert (base[1] if base else "") == (metric.unit if metric.unit in ("seconds", "bytes") else "")
    for other in ("bits", "milliseconds", "minutes", "percent", "kilobytes", "micros"):
        assert other not in metric.name
    assert set(metric.per) <= set(SIZES)
    assert metric.help
    assert bool(metric.per) == bool(metric.labels) or metric.name.endswith("build_info")


def test_the_documentation_has_the_table() -> None:
    remedy = "make it anew: cd tests && ../.venv/bin/python -m unit.packaging.write_metrics_table"
    assert (ROOT / "docs" / "metrics.md").read_text().endswith(markdown()), remedy


def test_the_board_keeps_the_rules_of_grafanas_linter() -> None:
    """The rules of github.com/grafana/dashboard-linter except its list of units; runs the linter too, if built."""
    assert board()["editable"] is False
    variables = {one["name"]: one for one in board()["templating"]["list"]}
    assert (variables["datasource"]["type"], variables["datasource"]["label"]) == ("datasource", "Data source")
    for name, variable in variables.items():
        if name != "datasource":
            assert variable["datasource"]["uid"] == "${datasource}"
            assert (variable["type"], variable["refresh"], variable["multi"]) == ("query", 2, True)
    for name in ("job", "instance"):
        assert (variables[name]["label"], variables[name]["allValue"]) == (name.title(), ".+")
    for panel in board()["panels"]:
        assert panel["title"]
        assert panel["description"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["targets"]
        for target in panel["targets"]:
            _well_asked(target)
    # No registry has a built linter; `go build` in its repository makes it.
    built = ROOT / ".cache" / "dashboard-linter" / "dashboard-linter"
    if linter := str(built) if os.access(built, os.X_OK) else shutil.which("dashboard-linter"):
        done = subprocess.run([linter, "lint", "--strict", str(FILE)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def _well_asked(target: dict[str, Any]) -> None:
    expr = target["expr"]
    for name, matchers, ending in re.findall(r"(\b(?:downburst_\w+|up)){([^}]*)}(\S*)", expr):
        assert 'job=~"$job"' in matchers, expr
        assert 'instance=~"$instance"' in matchers, expr
        if name.endswith(("_total", "_bucket")):
            assert ending.startswith("["), f"{name} without rate or increase: {expr}"
    assert "rate(" not in expr or "[$__rate_interval]" in expr, expr
