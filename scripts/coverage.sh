#!/usr/bin/env bash
# Measures which lines the unit tests execute: Python by pytest-cov into dist/coverage-python.json, crates by
# cargo-llvm-cov into dist/coverage-crates.json where it is installed. Prints the totals.
set -euo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"

cd "$ROOT"
mkdir -p dist
sources=()
for package in {core,app,analyze,api,client,contract,scheduler,services,workers}/downburst*; do
    sources+=("--cov=$package")
done
step coverage-python "coverage of the Python unit tests" "See the failed test." \
    "$VENV_PYTHON" -m pytest -q -n 2 tests/unit -m "not all and not nightly" "${sources[@]}" \
    --cov-report=json:dist/coverage-python.json --cov-report=
"$VENV_PYTHON" -c '
import json
totals = json.load(open("dist/coverage-python.json"))["totals"]
covered, lines = totals["covered_lines"], totals["num_statements"]
print(f"  Python: {covered} of {lines} statements ({covered / lines:.1%})")'
if cargo llvm-cov --version >/dev/null 2>&1; then
    step coverage-crates "coverage of the crates' unit tests" "See the failed test." \
        cargo llvm-cov --manifest-path workers/Cargo.toml --locked --lib --json --summary-only \
        --output-path dist/coverage-crates.json
    "$VENV_PYTHON" -c '
import json
lines = json.load(open("dist/coverage-crates.json"))["data"][0]["totals"]["lines"]
print("  crates: %d of %d lines (%.1f %%)" % (lines["covered"], lines["count"], lines["percent"]))'
else
    echo "  not run: coverage of the crates needs cargo install cargo-llvm-cov && rustup component add llvm-tools"
fi
