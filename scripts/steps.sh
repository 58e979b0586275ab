# shellcheck shell=bash disable=SC2034 # the variables are for the scripts that source this
# Sourced by the other scripts: places of files, and steps that report their work, their time and a remedy.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
STAMPS=$ROOT/.cache/stamps
LOGS=$ROOT/.cache/logs
VENV_PYTHON=$ROOT/.venv/bin/python
TARGET=${CARGO_TARGET_DIR:-$ROOT/workers/target}
[[ -d $HOME/.cargo/bin ]] && PATH=$HOME/.cargo/bin:$PATH
mkdir -p "$STAMPS" "$LOGS"

# step NAME SENTENCE HINT COMMAND...: runs the command with its output in a log, prints progress and the time it took;
# on failure prints the end of the log and the hint, and ends the script.
step() {
    local sentence=$2 hint=$3 log=$LOGS/$1.log started=$SECONDS reporter code=0
    shift 3
    printf '  %s ... ' "$sentence"
    : >"$log"
    progress "$log" "$$" 9>&- &
    reporter=$!
    "$@" >"$log" 2>&1 </dev/null || code=$?
    kill "$reporter" 2>/dev/null || true
    wait "$reporter" 2>/dev/null || true
    if ((code == 0)); then
        printf 'done in %d s\n' $((SECONDS - started))
        return
    fi
    printf 'failed after %d s. The end of %s:\n' $((SECONDS - started)) "$log"
    tail -n 25 "$log" | sed 's/^/    /'
    fail "$sentence failed." "$hint"
}

# progress LOG PID: prints the last line of a long step's log every half minute, as long as the script PID runs.
progress() {
    local seconds=0
    while sleep 30 >/dev/null 2>&1 && kill -0 "$2" 2>/dev/null; do
        seconds=$((seconds + 30))
        printf '\n    %d s: %.90s ' "$seconds" "$(tail -n 1 "$1" | tr -d '[:cntrl:]')"
    done
}

# fail SENTENCE HINT: prints the fault and its remedy, and ends the script.
fail() {
    printf '\n%s\n%s\n' "$1" "$2" >&2
    exit 1
}

# digest FILE_OR_FOLDER...: one digest over the names and contents of files.
digest() {
    (cd "$ROOT" && find "$@" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1)
}

# openssl_headers: tells whether the node for feeds on Kafka can be built here.
openssl_headers() {
    pkg-config --exists openssl 2>/dev/null
}

# is_current STAMP DIGEST: tells whether the step that wrote this stamp ran for the same input.
is_current() {
    [[ -f $STAMPS/$1 && $(<"$STAMPS/$1") == "$2" ]]
}

# stamp STAMP DIGEST: notes that a step ran for this input.
stamp() {
    printf '%s\n' "$2" >"$STAMPS/$1"
}

# as_root COMMAND...: runs the command as root, by sudo where needed.
as_root() {
    if [[ $(id -u) -eq 0 ]]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        printf "'%s' needs root, and there is no sudo on this machine.\n" "$*" >&2
        return 1
    fi
}
