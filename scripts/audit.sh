#!/usr/bin/env bash
# Scans licences, bans, sources and advisories (scripts/audit.py says how), with programs that are kept in .cache.
set -euo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"
cd "$ROOT"

CARGO_DENY_VERSION=0.20.2 PIP_AUDIT_VERSION=2.10.1
CARGO_DENY=$ROOT/.cache/cargo-deny/bin/cargo-deny PIP_AUDIT=$ROOT/.cache/pip-audit/bin/pip-audit
export CARGO_DENY PIP_AUDIT

# tool NAME COMMAND...: fetches a program that is not there yet; without it its scans are recorded as not run.
tool() {
    local name=$1 log=$LOGS/audit-$1.log
    shift
    printf '  %s in .cache (some minutes) ... ' "$name"
    if "$@" >"$log" 2>&1 </dev/null; then
        echo "done"
    else
        printf 'not there (%s)\n' "$log"
    fi
}

pip_audit() {
    "$VENV_PYTHON" -m venv .cache/pip-audit &&
        .cache/pip-audit/bin/pip install --disable-pip-version-check "pip-audit==$PIP_AUDIT_VERSION"
}

[[ -x $CARGO_DENY ]] ||
    tool cargo-deny nice cargo install --locked --root .cache/cargo-deny "cargo-deny@$CARGO_DENY_VERSION"
[[ -x $PIP_AUDIT ]] || tool pip-audit pip_audit
exec "$VENV_PYTHON" scripts/audit.py
