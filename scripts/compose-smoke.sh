#!/usr/bin/env bash
# Builds the image, starts docker-compose.yml under a name of its own, puts a product in and waits until both sites hold
# the same bytes; takes everything down again.
set -euo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"
cd "$ROOT"

export DOWNBURST_HTTP_PORT=${DOWNBURST_HTTP_PORT:-17371}
PROJECT=downburst-smoke
PATIENCE_S=120

main() {
    needs_engine
    trap 'compose down --volumes --timeout 20 >/dev/null 2>&1' EXIT
    step compose-up "image, hub and two sites" "Read the build's end above." compose up --detach --build
    local sent
    sent=$(head -c 100000 /dev/urandom | base64 | tee "$LOGS/compose-product" | sha256sum | cut -d' ' -f1)
    step compose-put "a product of 135 kB into feed DEMO" "docker-compose logs hub tells more." put_product
    wait_for site-a "$sent"
    wait_for site-b "$sent"
    echo "Both sites hold the product: $sent"
}

needs_engine() {
    if ! timeout 10 docker info >/dev/null 2>&1; then
        echo "No Docker engine answers on this machine; compose-smoke needs one (Debian: apt-get install docker.io)." >&2
        exit 2
    fi
    if ! compose version >/dev/null 2>&1; then
        echo "Docker has no Compose here; install docker-compose-plugin or docker-compose." >&2
        exit 2
    fi
}

compose() {
    if docker compose version >/dev/null 2>&1; then
        docker compose --project-name "$PROJECT" "$@"
    else
        docker-compose --project-name "$PROJECT" "$@"
    fi
}

put_product() {
    compose exec -T hub sh -c 'cat >/tmp/product' <"$LOGS/compose-product"
    compose exec -T hub downburst put DEMO smoke/product /tmp/product
}

wait_for() {
    local site=$1 sent=$2 until=$((SECONDS + PATIENCE_S))
    while ((SECONDS < until)); do
        if compose exec -T "$site" sh -c 'find received -type f -exec sha256sum {} +' 2>/dev/null | grep -q "^$sent "; then
            echo "  $site holds it"
            return
        fi
        sleep 1
    done
    compose logs --tail 40 >&2
    fail "$site did not get the product in $PATIENCE_S s." "The logs are above."
}

main "$@"
