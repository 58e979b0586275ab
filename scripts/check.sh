#!/usr/bin/env bash
# Checks the files that differ from a commit (the last one without an argument): lint, types, and the unit tests of the
# Python packages, crates and pages that they belong to.
#
#   scripts/check.sh          what is not committed yet
#   scripts/check.sh main     everything since main
set -uo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"

BIN=$ROOT/.venv/bin
CARGO=(--manifest-path "$ROOT/workers/Cargo.toml" --locked)
FAILED=0
export CARGO_TARGET_DIR=$TARGET DOWNBURST_PROFILE=debug

main() {
    cd "$ROOT" || exit 1
    git rev-parse --verify --quiet "${1:-HEAD}^{commit}" >/dev/null ||
        fail "There is no commit '$1' to compare with." "Name a branch or a commit: make check ARGS=main"
    local changed python crates
    mapfile -t changed < <(changed_since "${1:-HEAD}")
    mapfile -t python < <(printf '%s\n' "${changed[@]}" | grep '\.py$')
    mapfile -t crates < <(
        printf '%s\n' "${changed[@]}" | sed -n 's#^workers/crates/\([^/]*\)/.*#downburst-\1#p' | sort -u
    )
    ((${#python[@]} == 0)) || check_python "${python[@]}"
    ((${#crates[@]} == 0)) || check_crates "${crates[@]}"
    ! printf '%s\n' "${changed[@]}" | grep -q '^services/dashboard/' || check_dashboard
    ! printf '%s\n' "${changed[@]}" | grep -qE '\.(md|sh|toml|yaml|yml)$|^Makefile$' || check_documents
    ((${#changed[@]})) || echo "Nothing differs from ${1:-HEAD}."
    ((FAILED == 0)) && echo "All checks of ${#changed[@]} files passed in $SECONDS s." && return
    echo "$FAILED checks failed." >&2
    exit 1
}

# changed_since COMMIT: files that differ from it or are new, one on a line; those that were removed are left out.
changed_since() {
    { git diff --name-only --diff-filter=d "$1" && git ls-files --others --exclude-standard; } | sort -u
}

check_python() {
    local tests
    check ruff "$BIN/ruff" check "$@"
    check "ruff format" "$BIN/ruff" format --check "$@"
    check mypy "$BIN/mypy" "$@"
    mapfile -t tests < <(printf '%s\n' "$@" | tests_of | sort -u)
    ((${#tests[@]} == 0)) || check pytest "$VENV_PYTHON" -m pytest -q -m "not all and not nightly" "${tests[@]}"
}

# tests_of: the unit tests of the Python files on standard input. A test stands for itself; a module for the folder of
# tests of its part, or for the tests that name it where the part has no folder of its own.
tests_of() {
    local path name part
    while read -r path; do
        name=$(basename "$path" .py)
        part=${path#services/downburst_}
        case $path in
        tests/unit/*/test_*.py) echo "$path" ;;
        core/* | app/*) grep -rlw --include='test_*.py' "$name" tests/unit | head -n 12 ;;
        api/*) grep -rlw --include='test_*.py' "$name" tests/unit/api tests/unit/tenancy || echo tests/unit/tenancy ;;
        analyze/*) grep -rlw --include='test_*.py' "$name" tests/unit/analyze || echo tests/unit/analyze ;;
        scheduler/*) grep -rlw --include='test_*.py' "$name" tests/unit/scheduler || echo tests/unit/scheduler ;;
        services/downburst_*/*) echo "tests/unit/${part%%/*}" ;;
        workers/downburst_worker/*) echo tests/unit/worker ;;
        esac
    done
}

check_crates() {
    local packages=("${@/#/-p}")
    check "cargo fmt" cargo fmt --manifest-path "$ROOT/workers/Cargo.toml" "${packages[@]}" --check
    check clippy cargo clippy "${CARGO[@]}" "${packages[@]}" --all-targets -- -D warnings
    check "cargo test" cargo test "${CARGO[@]}" "${packages[@]}" --lib --quiet
}

check_dashboard() {
    check "dashboard types" npm run check --silent --prefix services/dashboard
    check "dashboard" npm test --silent --prefix services/dashboard
}

check_documents() {
    check "documents and scripts" "$VENV_PYTHON" -m pytest -q -n 2 tests/unit/packaging -m "not all and not nightly" \
        -k "links or words or make or sentences or metrics"
}

# check NAME COMMAND...: runs the command, and shows its output where it failed.
check() {
    local name=$1 started=$SECONDS log=$LOGS/check-${1// /-}.log
    shift
    printf '  %-22s ' "$name"
    if "$@" >"$log" 2>&1 </dev/null; then
        printf 'passed in %d s\n' $((SECONDS - started))
        return
    fi
    printf 'FAILED in %d s (%s)\n' $((SECONDS - started)) "$log"
    tail -n 40 "$log"
    FAILED=$((FAILED + 1))
}

main "$@"
