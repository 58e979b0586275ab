"""The stable commands: `make help` lists them, and commands that are not built say so and fail."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kit.patience import wait_for

ROOT = Path(__file__).resolve().parents[3]
PACE = (sys.executable, str(ROOT / "scripts" / "pace.py"))
REFERENCE_S = float(
    re.findall(r"^REFERENCE_S = ([0-9.]+)", (ROOT / "scripts" / "pace.py").read_text(), re.MULTILINE)[0]
)
STABLE = {
    *("help", "setup", "demo", "check", "test", "test-all", "lint", "nightly"),
    *("test-cluster", "test-peers", "compose-smoke", "bench"),
}


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)


def test_help_lists_every_target_with_its_description() -> None:
    listed = dict(line.split(None, 1) for line in make("--no-print-directory", "help").stdout.splitlines())
    defined = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(listed) == defined
    assert set(listed) >= STABLE


def test_what_is_not_built_says_so_and_fails() -> None:
    done = make("bench-nothing")
    assert done.returncode == 2
    assert "There is no bench-nothing" in done.stderr


@pytest.mark.parametrize(("setting", "code"), [("", 0), ("never", 1)])
def test_cluster_tests_without_java_say_so_and_are_skipped_or_fail(tmp_path: Path, setting: str, code: int) -> None:
    for tool in ("bash", "dirname", "mkdir"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or tool)
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path), "DOWNBURST_SKIP": setting}
    script = [str(tmp_path / "bash"), str(ROOT / "scripts" / "test-cluster.sh")]
    done = subprocess.run(script, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == code
    assert "java" in done.stderr
    assert "apt-get install" in done.stderr


@pytest.mark.parametrize(("setting", "code"), [("", 0), ("never", 1)])
@pytest.mark.parametrize("named", ["", "/nowhere"])
def test_tests_at_real_providers_without_prepared_agents_say_so_and_are_skipped_or_fail(
    named: str, setting: str, code: int
) -> None:
    environment = {**os.environ, "DOWNBURST_PEERS": named, "DOWNBURST_SKIP": setting}
    script = [str(ROOT / "scripts" / "test-peers.sh")]
    done = subprocess.run(script, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == code
    assert "DOWNBURST_PEERS" in done.stderr
    assert "docs/circuits-peers.md" in done.stderr


def test_no_other_command_runs_the_tests_at_real_providers() -> None:
    assert "tests/peers" not in (ROOT / "scripts" / "test.sh").read_text()


def test_normal_builds_leave_the_log_on_kafka_out() -> None:
    workspace = tomllib.loads((ROOT / "workers" / "Cargo.toml").read_text())["workspace"]
    crates = {f"crates/{path.name}" for path in (ROOT / "workers" / "crates").iterdir()}
    assert set(workspace["default-members"]) == crates - {"crates/log-kafka"}


def test_the_measurements_that_exist_are_listed() -> None:
    assert "bench-multicast" in make("bench").stdout


def test_scripts_stop_at_the_first_error_or_say_why_not() -> None:
    for script in sorted((ROOT / "scripts").glob("*.sh")):
        text = script.read_text()
        if text.startswith("# shellcheck shell=bash"):
            continue  # sourced by others
        assert re.search(r"^set -[e]?uo pipefail$", text, re.MULTILINE), script.name
        assert script.stat().st_mode & 0o111, f"{script.name} can't be executed"


@pytest.mark.parametrize(
    ("test", "test_all", "code"),
    [("true", "true", 0), ("false", "true", 1), ("true", "false", 1), ("false", "false", 1)],
)
def test_continuous_integration_runs_both_test_commands_and_fails_with_either(
    tmp_path: Path, test: str, test_all: str, code: int
) -> None:
    stand_in = tmp_path / "make"
    outcome = f"case $1 in test) {test};; test-all) {test_all};; esac"
    stand_in.write_text(f'#!/bin/sh\necho "make $*" >>{tmp_path}/ran\n{outcome}\n')
    stand_in.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run([str(ROOT / ".ci" / "run")], capture_output=True, check=False, env=environment)
    assert done.returncode == code
    assert (tmp_path / "ran").read_text() == "make test\nmake test-all\n"


def test_make_test_and_make_test_all_share_the_tests_out_and_leave_those_of_nights_out() -> None:
    script = (ROOT / "scripts" / "test.sh").read_text()
    usual, long = body_of(script, "python_half"), body_of(script, "run_test_all")
    assert re.findall(r'-m "(.*)"', usual) == ["not all and not nightly", "smoke and not nightly"]
    assert 'contract_of_adapters "not all and not nightly"' in usual
    assert "contract_of_kafka\n" in body_of(script, "crates_half")
    assert re.findall(r'-m "(.*)"', long) == ["all and not nightly and not system"]
    assert 'part_system "not smoke and not nightly"' in long
    assert '-m "not all and not nightly"' in body_of(script, "unit_python")


def test_nothing_that_failed_is_run_again() -> None:
    script = (ROOT / "scripts" / "test.sh").read_text()
    assert not re.findall(r"last-failed|reruns|again", script)


def test_only_continuous_integration_fails_beyond_the_time_budget(tmp_path: Path) -> None:
    script = (ROOT / "scripts" / "test.sh").read_text()
    budget, failing = (f"{name}() {{{body_of(script, name)}\n}}" for name in ("within_budget", "failed"))
    run = f'{budget}\n{failing}\nunset SECONDS\nSECONDS=18\nwithin_budget "make test" 8\ncat "$RESULTS"/*'
    (tmp_path / "pace").write_text(f"{REFERENCE_S * 2} 0\n")
    environment = {"PATH": os.environ["PATH"], "ROOT": str(ROOT), "VENV_PYTHON": sys.executable}
    for ci, failures in (("", 0), ("true", 1)):
        done = subprocess.run(
            ["bash", "-c", run],
            capture_output=True,
            text=True,
            check=False,
            env=environment | {"CI": ci, "RESULTS": str(tmp_path)},
        )
        told = "make test took 18 s with its set-up on a machine 2.00 times as slow as the reference"
        assert f"{told}, where it would take 9 s; its budget is 8 s there: move its slowest tests" in done.stdout
        assert done.stdout.count("make test: time budget") == failures


@pytest.mark.parametrize(
    ("measured", "factor"),
    [
        ([], "1.00"),
        ([(0.5, 0.0)], "1.00"),
        ([(1.5, 0.0), (9, 0.0), (1, 0.0)], "1.50"),
        ([(1, 0.2)], "1.25"),
        ([(9, 0.0)], "2.50"),
    ],
)
def test_budgets_count_at_the_pace_of_the_reference_machine(
    tmp_path: Path, measured: list[tuple[float, float]], factor: str
) -> None:
    file = tmp_path / "pace"
    file.write_text("".join(f"{times * REFERENCE_S} {stolen}\n" for times, stolen in measured))
    done = subprocess.run([*PACE, "--of", str(file)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == factor


def test_the_pace_is_the_processor_time_of_a_fixed_piece_of_work(tmp_path: Path) -> None:
    file = tmp_path / "pace"
    with subprocess.Popen([*PACE, "--every", "0.01", str(file)]) as measuring:
        wait_for("three measurements", lambda: file.exists() and len(file.read_text().splitlines()) >= 3)
        measuring.terminate()
    for line in file.read_text().splitlines()[:3]:
        took_s, stolen = map(float, line.split())
        assert took_s > 0
        assert 0 <= stolen < 1


def body_of(script: str, function: str) -> str:
    return script[script.index(f"\n{function}() {{") :].split("{", 1)[1].split("\n}\n", 1)[0]


def test_an_unknown_part_of_the_tests_is_refused_with_the_parts_that_exist() -> None:
    script = str(ROOT / "scripts" / "test.sh")
    done = subprocess.run([script, "nothing"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "The parts are: lint unit sim contract cluster integration system test test-all nightly" in done.stderr


def test_counts_of_long_tests_are_read_where_test_all_looks_for_them() -> None:
    script = (ROOT / "scripts" / "test.sh").read_text()
    counts = re.findall(r"DOWNBURST_[A-Z_]+(?==1000)", script)
    assert counts == ["DOWNBURST_CUT_STATES", "DOWNBURST_HOSTILE_SESSIONS", "DOWNBURST_GROUP_SITES"]
    finder = script[script.index("modules_that_read() {") :].split("\n}\n", 1)[0]
    found = subprocess.run(
        ["bash", "-c", f"{finder}\n}}\nmodules_that_read {' '.join(counts)}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert "site::power" in found.stdout.split()
