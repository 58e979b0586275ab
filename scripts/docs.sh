#!/usr/bin/env bash
# Builds the documentation where a document or the version changed; a warning, such as a dead reference, fails.
#
#   scripts/docs.sh          the site and the manual pages, in dist/docs
#   scripts/docs.sh check    only reads the documents and resolves their references
set -euo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"

OUT=$ROOT/dist/docs

main() {
    local purpose=${1:-build} input
    input=$(digest docs pyproject.toml requirements.lock)
    if [[ -f $OUT/html/index.html ]] && is_current docs "$input"; then
        return
    fi
    case $purpose in
    build)
        step docs "documentation: site and manual pages" "$HINT" build
        stamp docs "$input"
        ;;
    check) step docs-check "documents and their references" "$HINT" sphinx xml "$ROOT/.cache/docs" ;;
    *) fail "There is no '$purpose' of the documentation." "Name check, or nothing." ;;
    esac
}

# Pages whose document is gone would stay, and be served.
build() {
    rm -rf "$OUT" && sphinx html "$OUT" && sphinx man "$OUT" && rm -rf "$OUT/doctrees" "$OUT/html/.buildinfo"
}

# sphinx BUILDER FOLDER: every warning is listed before it ends.
sphinx() {
    "$VENV_PYTHON" -m sphinx -q -W --keep-going -c "$ROOT/docs/site" -d "$2/doctrees" -b "$1" "$ROOT/docs" "$2/$1"
}

HINT="Correct the documents that the warnings name; if there is no Sphinx, run make setup first."

main "$@"
