#!/usr/bin/env bash
# Makes the lock files anew: Python with hashes and no index named, crates, and the dashboard's packages.
set -euo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"
cd "$ROOT"

UV=$ROOT/.cache/uv/bin/uv
if [[ ! -x $UV ]]; then
    step uv-venv "virtual environment .cache/uv" "Run make setup first." "$VENV_PYTHON" -m venv .cache/uv
    step uv "uv in .cache/uv" "Check the network and run it again." \
        .cache/uv/bin/pip install --disable-pip-version-check uv
fi
OPTIONS=(--generate-hashes --no-emit-index-url --python-version 3.11)
step lock-python "requirements.lock" "Read the conflict above; pyproject.toml names the ranges." \
    "$UV" pip compile pyproject.toml --extra dev --extra docs "${OPTIONS[@]}" -o requirements.lock
step lock-image "requirements-image.lock, without what only tests need" "Read the conflict above." \
    "$UV" pip compile pyproject.toml -c requirements.lock "${OPTIONS[@]}" -o requirements-image.lock
step lock-build "requirements-build.lock" "Read the conflict above; requirements-build.in names the packages." \
    "$UV" pip compile requirements-build.in -c requirements.lock "${OPTIONS[@]}" -o requirements-build.lock
step lock-docs "requirements-docs.lock" "Read the conflict above; requirements-docs.in names the packages." \
    "$UV" pip compile requirements-docs.in -c requirements.lock "${OPTIONS[@]}" -o requirements-docs.lock
step lock-crates "workers/Cargo.lock" "Read the conflict above; workers/Cargo.toml names the ranges." \
    cargo generate-lockfile --manifest-path workers/Cargo.toml
step lock-dashboard "services/dashboard/package-lock.json" "Check the network and run it again." \
    npm install --package-lock-only --prefix services/dashboard
