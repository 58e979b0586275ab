#!/usr/bin/env bash
# Runs tests, goes on after a failure, and ends with a summary: durations, skipped tests with their reasons, the slowest
# tests, and the time budget. Each run prepares what it needs first.
#
#   scripts/test.sh test        `make test`: lint, unit, simulation, contract, integration, and a real case of each kind
#   scripts/test.sh test-all    what continuous integration runs after that
#   scripts/test.sh nightly     tests that take minutes each, and the coverage
#   scripts/test.sh PART...     one part of them: lint, unit, sim, contract, cluster, integration, system
set -uo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"

PARTS=(lint unit sim contract cluster integration system)
# Set-up included, at the pace of the reference machine (scripts/pace.py). Continuous integration fails beyond it: later
# work pays for the time that it adds.
TEST_BUDGET_S=1500 TEST_ALL_BUDGET_S=3600
# Counts of what tests generate, which are smaller where none is named.
LONG_COUNTS=(DOWNBURST_CUT_STATES=1000 DOWNBURST_HOSTILE_SESSIONS=1000 DOWNBURST_GROUP_SITES=1000
    DOWNBURST_CROWD_SITES=500 DOWNBURST_SMALL_WORLDS=2000)
# Tests of one file share a server in some folders, so that a worker gets whole files there.
declare -A TESTS_OF_A_WORKER=(
    [unit]=--dist=load [contract]=--dist=loadfile [integration]=--dist=load [system]=--dist=loadfile
)
BIN=$ROOT/.venv/bin
MANIFEST=$ROOT/workers/Cargo.toml
# A file to a kind of result, because some parts run beside each other.
RESULTS=$(mktemp -d -t downburst-test.XXXXXX)
# The process that measures the machine's pace, once it runs.
PACE=
export CARGO_TARGET_DIR=$TARGET DOWNBURST_PROFILE=debug
# A run starts a thousand hubs and commands: each would compile all modules anew where none may be written.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$ROOT/.cache/pycache

main() {
    cd "$ROOT" || exit 1
    trap 'kill "$PACE" 2>/dev/null; rm -rf "$RESULTS"' EXIT
    case ${1:-test} in
    test) run_test; within_budget "make test" "$TEST_BUDGET_S" ;;
    test-all) run_test_all; within_budget "make test-all" "$TEST_ALL_BUDGET_S" ;;
    nightly) set_up test-all && run_nightly ;;
    *) run_parts "$@" ;;
    esac
    close
    [[ ! -s $RESULTS/failed ]]
    exit
}

# The compiler leaves a core idle for minutes, and tests of real processes wait for most of their time: the crates' half
# runs beside Python's. Each half's output stays together.
run_test() {
    local log=$LOGS/test-crates-half.log crates
    set_up tools
    crates_half >"$log" 2>&1 &
    crates=$!
    echo "Programs and tests of the crates run beside what follows; $log has their output, which comes after it."
    python_half
    wait "$crates"
    cat "$log"
}

python_half() {
    lint_python
    unit_python
    programs_are_built || return 0
    contract_of_adapters "not all and not nightly"
    run_pytest integration tests/integration -n 2 -m "not all and not nightly"
    run_pytest system tests/system -n 2 "${TESTS_OF_A_WORKER[system]}" -m "smoke and not nightly"
}

# What judges no time comes last, and leaves the processors to the tests of real processes beside it.
crates_half() {
    if "$ROOT/scripts/setup.sh" test; then
        touch "$RESULTS/programs"
    else
        failed set-up programs
        touch "$RESULTS/no-programs"
        return
    fi
    unit_crates
    contract_of_kafka
    renice -n 10 "$BASHPID" >/dev/null
    format_of_crates
    part_sim
}

# Waits for the crates' half to build them, or not to.
programs_are_built() {
    until [[ -e $RESULTS/programs || -e $RESULTS/no-programs ]]; do
        sleep 1
    done
    [[ -e $RESULTS/programs ]]
}

# The rest of contract and system tests, those that take tens of seconds, and larger counts of what tests generate. The
# crates' need processors, and the other tests marked `all` wait for most of their time, so that they share the machine.
# System tests follow when both are done.
run_test_all() {
    local log=$LOGS/test-long-half.log long
    set_up test-all
    export "${LONG_COUNTS[@]}"
    part_cluster
    long_half >"$log" 2>&1 &
    long=$!
    echo "Long tests of the crates run beside what follows; $log has their output, which comes after it."
    run_marked all all 2 -m "all and not nightly and not system"
    wait "$long"
    cat "$log"
    part_system "not smoke and not nightly"
}

long_half() {
    renice -n 10 "$BASHPID" >/dev/null
    clippy
    long_tests_of_crates
    check test-all "bill of materials" scripts/sbom.sh .cache/sbom.cdx.json
    # Programs that `make audit` was not asked to fetch, and databases that can't be reached, are named as not judged.
    check test-all "audit" "$VENV_PYTHON" scripts/audit.py
    sed -n 's/^not run /SKIPPED audit:/p' "$LOGS/test-test-all-audit.log" >>"$RESULTS/skipped"
}

run_nightly() {
    run_marked nightly nightly 1 -m nightly
    check nightly coverage scripts/coverage.sh
}

run_parts() {
    local part
    for part in "$@"; do
        [[ " ${PARTS[*]} " == *" $part "* ]] ||
            fail "There is no part '$part' of the tests." "The parts are: ${PARTS[*]} test test-all nightly"
    done
    set_up test
    for part in "$@"; do
        case $part in
        lint) lint_python && format_of_crates && clippy ;;
        unit) unit_python && unit_crates ;;
        sim) part_sim ;;
        contract) part_contract "not nightly" ;;
        cluster) part_cluster ;;
        integration) run_pytest integration tests/integration -n 2 -m "not nightly" ;;
        system) part_system "not nightly" ;;
        esac
    done
}

set_up() {
    "$ROOT/scripts/setup.sh" "$1" || exit 1
    measure_pace
    # All crates, but for the one that can't be built without OpenSSL's headers.
    CRATES=(--workspace)
    openssl_headers || CRATES+=(--exclude downburst-log-kafka)
}

lint_python() {
    check lint "ruff check" "$BIN/ruff" check .
    check lint "ruff format" "$BIN/ruff" format --check .
    check lint "mypy" "$BIN/mypy"
    check lint "import layers" "$BIN/lint-imports"
    check lint "documentation" scripts/docs.sh check
    check lint "dashboard types" npm run check --silent --prefix services/dashboard
    check lint "licences" "$VENV_PYTHON" scripts/licences.py
    if command -v shellcheck >/dev/null; then
        check lint "shellcheck" shellcheck --external-sources scripts/*.sh scripts/stand-ins/*/*.sh \
            packaging/*/{postinst,prerm,postrm} packaging/hub/downburst-upgrade .ci/run
    else
        echo "SKIPPED shellcheck: it is not installed; apt-get install shellcheck" >>"$RESULTS/skipped"
    fi
}

format_of_crates() {
    check lint "cargo fmt" cargo fmt --manifest-path "$MANIFEST" --all --check
}

# Builds the whole workspace a second time.
clippy() {
    check lint "clippy" cargo clippy --manifest-path "$MANIFEST" "${CRATES[@]}" --locked --all-targets -- -D warnings
}

unit_python() {
    run_pytest unit tests/unit -n 2 -m "not all and not nightly"
    check unit "dashboard" npm test --silent --prefix services/dashboard
}

unit_crates() {
    check unit "crates" cargo test --manifest-path "$MANIFEST" "${CRATES[@]}" --exclude downburst-sim --locked \
        --no-fail-fast --quiet
}

# By names of tests, not of the crate: alone it would be built anew, with fewer features of what it depends on.
part_sim() {
    local worlds
    mapfile -t worlds < <(
        find workers/crates/sim/tests -mindepth 1 -maxdepth 1 -printf '--test\n%f\n' | sed 's/\.rs$//'
    )
    check sim "simulated networks" cargo test --manifest-path "$MANIFEST" "${CRATES[@]}" --locked --no-fail-fast \
        --quiet "${worlds[@]}"
}

# part_contract MARKS
part_contract() {
    contract_of_kafka
    contract_of_adapters "$1"
}

contract_of_kafka() {
    check contract "logs on Kafka" scripts/test-cluster.sh contract
    grep '^SKIPPED' "$LOGS/test-contract-logs-on-Kafka.log" >>"$RESULTS/skipped"
}

# contract_of_adapters MARKS
contract_of_adapters() {
    run_pytest contract tests/contract -n 2 "${TESTS_OF_A_WORKER[contract]}" -m "$1"
}

part_cluster() {
    check cluster "Kubernetes" scripts/test-cluster.sh built
    grep '^SKIPPED' "$LOGS/test-cluster-Kubernetes.log" >>"$RESULTS/skipped"
}

# part_system MARKS: tests share the machine, but for those that judge how much or how fast.
part_system() {
    run_pytest beside tests/system -n 2 "${TESTS_OF_A_WORKER[system]}" --no-loadscope-reorder -m "not alone and ($1)"
    run_pytest alone tests/system -m "alone and ($1)"
}

# Tests of the crates that read one of the counts.
long_tests_of_crates() {
    local targets modules
    mapfile -t targets < <(crates_tests_that_read "${LONG_COUNTS[@]%%=*}")
    if ((${#targets[@]})); then
        check test-all "crates, long" cargo test --manifest-path "$MANIFEST" "${CRATES[@]}" --locked --no-fail-fast \
            "${targets[@]}"
    fi
    mapfile -t modules < <(modules_that_read "${LONG_COUNTS[@]%%=*}")
    if ((${#modules[@]})); then
        check test-all "modules, long" cargo test --manifest-path "$MANIFEST" "${CRATES[@]}" --exclude downburst-sim \
            --locked --no-fail-fast --lib -- "${modules[@]}"
    fi
}

# run_marked PART MARK WORKERS ARGUMENT...: runs pytest on the files with a mark, a folder at a time, because modules of
# two folders may have the same name.
run_marked() {
    local part=$1 mark=$2 workers=$3 folder files by
    shift 3
    for folder in unit contract integration system; do
        by=()
        ((workers == 1)) || by=(-n "$workers" "${TESTS_OF_A_WORKER[$folder]}")
        mapfile -t files < <(
            grep --recursive --files-with-matches --include='test_*.py' "mark\.$mark\b" "tests/$folder" | sort
        )
        ((${#files[@]} == 0)) || run_pytest "$part-$folder" "tests/$folder" "${files[@]}" "${by[@]}" "$@"
    done
}

# crates_tests_that_read VARIABLE...: "--test" and the name, on a line each, of each test target of a crate that names
# one of the variables.
crates_tests_that_read() {
    local variables
    printf -v variables '%s\n' "$@"
    grep --recursive --files-with-matches --fixed-strings --word-regexp -e "${variables%$'\n'}" \
        workers/crates/*/tests |
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
    local part=$1 folder=$2 where=("$2") log=$LOGS/test-$1-pytest.log
    shift 2
    [[ ${1-} != tests/* ]] || where=()
    check "$part" "pytest" some_pytest "${where[@]}" --durations=25 --durations-min=1 "$@"
    printf '%s: %s\n' "$part" "$(grep -E '^=+ .* in [0-9.]+s.*=+$' "$log" | tail -n1)" >>"$RESULTS/pytest"
    grep '^SKIPPED' "$log" >>"$RESULTS/skipped"
    grep -E '^[0-9.]+s (call|setup|teardown) ' "$log" >>"$RESULTS/durations"
}

# A choice of tests that is empty is no failure: pytest ends with 5 then, and says so.
# shellcheck disable=SC2317 # called by check
some_pytest() {
    local code=0
    "$VENV_PYTHON" -m pytest "$@" || code=$?
    return $((code == 5 ? 0 : code))
}

# check PART NAME COMMAND...: runs the command with its output on screen and in a log, and records its result.
check() {
    local part=$1 name=$2 started=$SECONDS word=passed log
    shift 2
    log=$LOGS/test-$part-${name// /-}.log
    printf '\n── %s: %s\n' "$part" "$name"
    "$@" 2>&1 </dev/null | tee "$log"
    if [[ ${PIPESTATUS[0]} -ne 0 ]]; then
        word="FAILED ($log)"
        failed "$part" "$name"
    fi
    printf '%-22s %-22s %s in %d s\n' "$part" "$name" "$word" $((SECONDS - started)) >>"$RESULTS/summary"
}

# failed PART NAME: records a failure.
failed() {
    printf '%s: %s\n' "$@" >>"$RESULTS/failed"
}

# Measures the machine's pace every ten seconds until the script ends.
measure_pace() {
    [[ -z $PACE ]] || return 0
    "$VENV_PYTHON" "$ROOT/scripts/pace.py" "$RESULTS/pace" &
    PACE=$!
}

# within_budget COMMAND SECONDS: compares the time since the start with the budget, both at the pace of the reference
# machine, and fails continuous integration.
within_budget() {
    local slower sentence taken
    slower=$("$VENV_PYTHON" "$ROOT/scripts/pace.py" --of "$RESULTS/pace") || slower=1.00
    taken=$((SECONDS * 100 / 10#${slower/./}))
    sentence="$1 took $SECONDS s with its set-up on a machine $slower times as slow as the reference, where it would"
    sentence+=" take $taken s; its budget is $2 s there"
    if ((taken <= $2)); then
        echo "$sentence." >>"$RESULTS/summary"
        return
    fi
    echo "$sentence: move its slowest tests to make test-all or make nightly, or make them faster." >>"$RESULTS/summary"
    [[ ${CI:-} != true ]] || failed "$1" "time budget"
}

close() {
    if [[ -s $RESULTS/skipped ]]; then
        printf '\n── not judged on this machine\n'
        cat "$RESULTS/skipped"
    fi
    if [[ -s $RESULTS/durations ]]; then
        printf '\n── slowest tests\n'
        sort -rn "$RESULTS/durations" | head -n 25
    fi
    printf '\n── summary (%d s)\n' "$SECONDS"
    cat "$RESULTS/summary"
    [[ ! -s $RESULTS/pytest ]] || cat "$RESULTS/pytest"
    [[ ! -s $RESULTS/failed ]] || printf 'FAILED %s\n' "$(paste -sd ';' "$RESULTS/failed")"
}

main "$@"
