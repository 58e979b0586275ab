#!/usr/bin/env bash
# Builds what the chart is tested with from Go modules, into a folder outside of the repository:
#
#   scripts/cluster-tools.sh helm            Helm (two minutes of one processor)
#
# What was built is not built again, and what was interrupted goes on where it was, by Go's own caches.
set -euo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/downburst-cluster
BIN=$CACHE/bin
HELM=3.22.0
HINT="If a download failed, check the network (go env GOPROXY) and run it again; what was built is kept."

main() {
    command -v go >/dev/null || fail "Go was not found, which builds these tools." "Install Go 1.25 or later (https://go.dev)."
    mkdir -p "$BIN"
    exec 9>"$CACHE/lock"
    flock 9
    export CGO_ENABLED=0 GOTOOLCHAIN=auto
    local wanted
    for wanted in "${@:-helm}"; do
        case $wanted in
        helm) tool helm "helm.sh/helm/v3/cmd/helm@v$HELM" "Helm $HELM (some minutes the first time)" ;;
        *) fail "There is no '$wanted' here." "Choose helm." ;;
        esac
    done
}

# tool NAME MODULE SENTENCE: one program of a module that stands for itself.
tool() {
    is_built "$1" "$2" && return
    step "tool-$1" "$3" "$HINT" env GOBIN="$BIN" go install -trimpath -ldflags '-s -w' "$2"
    echo "$2" >"$BIN/$1.version"
}

is_built() {
    [[ -x $BIN/$1 && -f $BIN/$1.version && $(<"$BIN/$1.version") == "$2" ]]
}

main "$@"
