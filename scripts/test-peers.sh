#!/usr/bin/env bash
# Orders circuits from real provider agents (SuPA behind PolyNSI, OpenNSA) that DOWNBURST_PEERS holds prepared:
#
#   DOWNBURST_PEERS=DIRECTORY scripts/test-peers.sh [ARGUMENT...]   the arguments are for pytest
#
# The agents listen on every address, so tests and agents run in a network namespace that has the loopback interface
# alone. docs/circuits-peers.md has the directory's layout.
set -euo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"

main() {
    [[ -n ${DOWNBURST_PEERS:-} ]] || skipped "DOWNBURST_PEERS names no directory of prepared provider agents"
    [[ -d $DOWNBURST_PEERS ]] || skipped "the directory $DOWNBURST_PEERS that DOWNBURST_PEERS names is not there"
    [[ $(id -u) -eq 0 ]] || skipped "network namespaces need root"
    command -v unshare >/dev/null || skipped "unshare is missing (apt-get install util-linux)"
    cd "$ROOT"
    export DOWNBURST_PEERS
    # shellcheck disable=SC2016 # expanded by the inner shell
    exec unshare --net bash -c 'ip link set lo up && exec "$@"' -- "$VENV_PYTHON" -m pytest tests/peers "$@"
}

# skipped REASON: ends the script.
skipped() {
    [[ ${DOWNBURST_SKIP:-} == never ]] && fail "Would be skipped, which DOWNBURST_SKIP=never forbids: $1." "$REMEDY"
    printf 'SKIPPED tests at real providers: %s. %s\n' "$1" "$REMEDY" >&2
    exit 0
}

REMEDY="See docs/circuits-peers.md, then run it again as root."

main "$@"
