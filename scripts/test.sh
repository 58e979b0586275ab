#!/usr/bin/env bash
# Runs the named parts of the tests (all of them without a name), goes on after a failure, and ends with a summary, the
# reasons of skipped tests and the closing line of every pytest run.
set -uo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"

ALL_PARTS=(lint unit sim contract cluster integration system)
# What is too long for `make test`: counts of what tests generate, which are smaller where none is named.
LONG_COUNTS=(DOWNBURST_CUT_STATES=1000 DOWNBURST_HOSTILE_SESSIONS=1000)
SUMMARY=() PYTEST_LINES=() PYTEST_LOGS=() SKIPPED=() UNSTEADY=() FAILED=0
# More that fail than these are no accident of a shared machine, and are not tried a second time.
MOST_AGAIN=3
LAST_FAILED=(--last-failed --last-failed-no-failures none)
BIN=$ROOT/.venv/bin
MANIFEST=$ROOT/workers/Cargo.toml
export CARGO_TARGET_DIR=$TARGET DOWNBURST_PROFILE=debug

main() {
    cd "$ROOT" || exit 1
    local part
    for part in "${@:-${ALL_PARTS[@]}}"; do
        run_part "$part"
    done
    close
    exit $((FAILED > 0))
}

run_part() {
    case $1 in
    lint) part_lint ;;
    unit) part_unit ;;
    sim) part_sim ;;
    contract) part_contract ;;
    cluster) part_cluster ;;
    integration) run_pytest integration tests/integration -n 2 -m "not all and not nightly" ;;
    system) part_system ;;
    test-all) part_test_all ;;
    nightly) run_marked nightly nightly -m nightly ;;
    *) fail "There is no part '$1' of the tests." "The parts are: ${ALL_PARTS[*]} test-all nightly" ;;
    esac
}

part_lint() {
    check lint "ruff check" "$BIN/ruff" check .
    check lint "ruff format" "$BIN/ruff" format --check .
    check lint "mypy" "$BIN/mypy"
    check lint "import layers" "$BIN/lint-imports"
    check lint "cargo fmt" cargo fmt --manifest-path "$MANIFEST" --all --check
    check lint "clippy" cargo clippy --manifest-path "$MANIFEST" --workspace --locked --all-targets -- -D warnings
    check lint "dashboard types" npm run check --silent --prefix services/dashboard
    check lint "licences" "$VENV_PYTHON" scripts/licences.py
    if command -v shellcheck >/dev/null; then
        check lint "shellcheck" shellcheck --external-sources scripts/*.sh scripts/stand-ins/*/*.sh packaging/*/{postinst,prerm,postrm} packaging/hub/downburst-upgrade .ci/run
    else
        SKIPPED+=("SKIPPED shellcheck: it is not installed; apt-get install shellcheck")
    fi
}

part_unit() {
    run_pytest unit tests/unit -n 2 -m "not all and not nightly"
    check unit "crates" cargo test --manifest-path "$MANIFEST" --workspace --exclude downburst-sim --locked --no-fail-fast --quiet
    check unit "dashboard" npm test --silent --prefix services/dashboard
}

# By names of tests, not of the crate: alone it would be built anew, with fewer features of what it depends on.
part_sim() {
    local worlds
    mapfile -t worlds < <(find workers/crates/sim/tests -mindepth 1 -maxdepth 1 -printf '--test\n%f\n' | sed 's/\.rs$//')
    check sim "simulated networks" cargo test --manifest-path "$MANIFEST" --workspace --locked --no-fail-fast --quiet "${worlds[@]}"
}

# Feeds' logs on Kafka come first: system tests use the node that is built for them.
part_contract() {
    check contract "logs on Kafka" scripts/test-cluster.sh contract
    mapfile -t -O "${#SKIPPED[@]}" SKIPPED < <(grep '^SKIPPED' "$LOGS/test-contract-logs-on-Kafka.log")
    # A file to a worker: tests of one file share a server.
    run_pytest contract tests/contract -n 2 --dist loadfile -m "not all and not nightly"
}

part_cluster() {
    local log=$LOGS/test-cluster-Kubernetes.log failed_before=$FAILED
    check cluster "Kubernetes" scripts/test-cluster.sh built
    mapfile -t -O "${#SKIPPED[@]}" SKIPPED < <(grep '^SKIPPED' "$log")
    ((FAILED == failed_before)) || try_again cluster "$log" scripts/test-cluster.sh built "${LAST_FAILED[@]}"
}

# Tests that judge what happens, and not when, share the machine; the others measure, and have it to themselves.
part_system() {
    run_pytest beside tests/system -n 2 --dist loadfile -m "beside and not all and not nightly"
    run_pytest system tests/system -m "not beside and not all and not nightly"
}

# The tests that are marked so, and those of the crates that read one of the counts.
part_test_all() {
    local targets modules
    export "${LONG_COUNTS[@]}"
    run_marked all-beside all -n 2 --dist loadfile -m "all and not nightly and (beside or not system)"
    run_marked all-system all -m "all and not nightly and system and not beside"
    mapfile -t targets < <(crates_tests_that_read "${LONG_COUNTS[@]%%=*}")
    if ((${#targets[@]})); then
        check test-all "crates, long" cargo test --manifest-path "$MANIFEST" --workspace --locked --no-fail-fast "${targets[@]}"
    fi
    mapfile -t modules < <(modules_that_read "${LONG_COUNTS[@]%%=*}")
    if ((${#modules[@]})); then
        check test-all "modules, long" cargo test --manifest-path "$MANIFEST" --workspace --exclude downburst-sim --locked \
            --no-fail-fast --lib -- "${modules[@]}"
    fi
    check test-all "bill of materials" scripts/sbom.sh .cache/sbom.cdx.json
    # Programs that `make audit` was not asked to fetch, and databases that can't be reached, are named as not judged.
    check test-all "audit" "$VENV_PYTHON" scripts/audit.py
    mapfile -t -O "${#SKIPPED[@]}" SKIPPED < <(sed -n 's/^not run /SKIPPED audit:/p' "$LOGS/test-test-all-audit.log")
}

# run_marked PART MARK ARGUMENT...: runs pytest on the files that name a mark, a folder at a time: modules of two folders
# may have the same name.
run_marked() {
    local part=$1 mark=$2 folder files
    shift 2
    for folder in unit contract integration system; do
        mapfile -t files < <(grep --recursive --files-with-matches --include='test_*.py' "mark\.$mark\b" "tests/$folder" | sort)
        ((${#files[@]} == 0)) || run_pytest "$part-$folder" "tests/$folder" "${files[@]}" "$@"
    done
}

# crates_tests_that_read VARIABLE...: "--test" and the name, on a line each, of each test target of a crate with a
# variable's name in it.
crates_tests_that_read() {
    local variables
    printf -v variables '%s\n' "$@"
    grep --recursive --files-with-matches --fixed-strings --word-regexp -e "${variables%$'\n'}" workers/crates/*/tests |
        sed -E 's#^.*/tests/([^/]+).*#\1#; s/\.rs$//; s/^/--test\n/' | paste -d ' ' - - | sort -u | tr ' ' '\n'
}

# modules_that_read VARIABLE...: paths of the crates' own modules whose unit tests read one of these counts.
modules_that_read() {
    local variables
    printf -v variables '%s\n' "$@"
    grep --recursive --files-with-matches --fixed-strings --word-regexp -e "${variables%$'\n'}" workers/crates/*/src |
        sed -E 's#^.*/src/##; s#(/mod)?\.rs$##; s#/#::#g'
}

# run_pytest PART FOLDER [FILE...] ARGUMENT...: the tests of a folder, or of some of its files.
run_pytest() {
    local part=$1 folder=$2 where=("$2")
    if [[ -z $(find "$folder" -name 'test_*.py' -print -quit) ]]; then
        SUMMARY+=("$(printf '%-22s %-22s %s' "$part" pytest "no tests in $folder")")
        return
    fi
    shift 2
    [[ ${1-} != tests/* ]] || where=()
    local log=$LOGS/test-$part-pytest.log failed_before=$FAILED
    check "$part" "pytest" some_pytest "${where[@]}" --durations=25 --durations-min=1 "$@"
    PYTEST_LOGS+=("$log")
    PYTEST_LINES+=("$part: $(grep -E '^=+ .* in [0-9.]+s.*=+$' "$log" | tail -n1)")
    mapfile -t -O "${#SKIPPED[@]}" SKIPPED < <(grep '^SKIPPED' "$log")
    if ((FAILED > failed_before)) && [[ $part =~ ^(contract|integration|beside|system|all-.*)$ ]]; then
        try_again "$part" "$log" "$VENV_PYTHON" -m pytest "$folder" "${LAST_FAILED[@]}"
    fi
}

# A choice of tests that is empty is no failure: pytest ends with 5 then, and says so.
# shellcheck disable=SC2317 # called by check
some_pytest() {
    local code=0
    "$VENV_PYTHON" -m pytest "$@" || code=$?
    return $((code == 5 ? 0 : code))
}

# Real brokers, namespaces and browsers share a machine with others: a few tests that failed are run once more, alone.
# What passes then is named at the end, as a fault to be looked for; what fails again fails the run.
#
# try_again PART LOG COMMAND...
try_again() {
    local part=$1 failing
    mapfile -t failing < <(grep -E '^(FAILED|ERROR) ' "$2" | sed -E 's/ - .*//')
    shift 2
    if ((${#failing[@]} == 0 || ${#failing[@]} > MOST_AGAIN)); then
        return
    fi
    local failed_before=$FAILED
    check "$part" "failed ones again" "$@"
    if ((FAILED == failed_before)); then
        FAILED=$((FAILED - 1))
        UNSTEADY+=("${failing[@]}")
    fi
}

# check PART NAME COMMAND...: runs the command with its output on screen and in a log, and notes how it went.
check() {
    local part=$1 name=$2 started=$SECONDS word=passed log
    shift 2
    log=$LOGS/test-$part-${name// /-}.log
    printf '\n── %s: %s\n' "$part" "$name"
    "$@" 2>&1 </dev/null | tee "$log"
    if [[ ${PIPESTATUS[0]} -ne 0 ]]; then
        word="FAILED ($log)"
        FAILED=$((FAILED + 1))
    fi
    SUMMARY+=("$(printf '%-22s %-22s %s in %d s' "$part" "$name" "$word" $((SECONDS - started)))")
}

close() {
    if ((${#SKIPPED[@]})); then
        printf '\n── not judged on this machine\n'
        printf '%s\n' "${SKIPPED[@]}"
    fi
    if ((${#UNSTEADY[@]})); then
        printf '\n── failed, and passed when run again alone: look for the cause\n'
        printf '%s\n' "${UNSTEADY[@]}"
    fi
    slowest
    printf '\n── summary (%d s)\n' "$SECONDS"
    printf '%s\n' "${SUMMARY[@]}"
    printf '%s\n' "${PYTEST_LINES[@]}"
}

# The slowest tests of all parts of this run, from what each run of pytest printed: where time can be saved.
slowest() {
    local lines
    lines=$(cat /dev/null "${PYTEST_LOGS[@]}" | grep -E '^[0-9.]+s (call|setup|teardown) ' | sort -rn | head -n 25)
    [[ -z $lines ]] || printf '\n── slowest tests\n%s\n' "$lines"
}

main "$@"
