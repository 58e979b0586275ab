#!/usr/bin/env bash
# Builds the image, starts docker-compose.yml under a name of its own, and looks that products reach the three sites, by
# multicast too. Installs what it needs, and takes everything down again.
set -euo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"
# shellcheck source=scripts/engine.sh
source "$ROOT/scripts/engine.sh"
cd "$ROOT"

export DOWNBURST_HTTP_PORT=${DOWNBURST_HTTP_PORT:-17371}
PROJECT=downburst-smoke
SITES=(site-a site-b site-c)
STARTED_S=60 PATIENCE_S=120
HINT="'$LOGS/compose.log' has what the containers said."
IS_UP=''

main() {
    trap end EXIT
    engine
    base_images
    step image "image downburst:local" "Read the build's end above." \
        "$DOCKER" build --tag downburst:local "${BUILD_OPTIONS[@]}" .
    starts
    carries_by_multicast
    echo "Compose smoke: passed."
}

# All parts up and well, and the feed at every site, in under a minute.
starts() {
    local began=$SECONDS
    IS_UP=yes
    project down --volumes --timeout 5 >/dev/null 2>&1 || true
    step compose-up "Kafka, PostgreSQL, hub, scheduler, latency service, source, three sites" "$HINT" \
        project up --detach --no-build
    step compose-well "products of the feed at ${SITES[*]}" "$HINT" all_are_well
    local took=$((SECONDS - began))
    printf '  all well after %d s\n' "$took"
    ((took <= STARTED_S)) && return
    # More work waits than there are processors: how long a start takes here says nothing.
    if (($(cut -d. -f1 /proc/loadavg) > 2 * $(nproc))); then
        printf '  not judged: this machine is busy (load %s)\n' "$(cut -d' ' -f1 /proc/loadavg)"
    else
        fail "The start took $took s, more than $STARTED_S s." "$HINT"
    fi
}

all_are_well() {
    local site until=$((SECONDS + PATIENCE_S))
    for site in hub "${SITES[@]}"; do
        until [[ $("$DOCKER" inspect --format '{{.State.Health.Status}}' "$(project ps --quiet "$site")") == healthy ]]; do
            ((SECONDS < until)) || return 1
            sleep 0.5
        done
    done
}

carries_by_multicast() {
    project exec -T hub downburst plans pin DEMO multicast >/dev/null
    step compose-multicast "multicast between the containers" "$HINT" probe served DEMO multicast "${#SITES[@]}"
    local sent site
    sent=$(probe put-one DEMO smoke/large 5000000)
    for site in "${SITES[@]}"; do
        step "compose-large-$site" "a product of 5 MB at $site" "$HINT" arrives "$site" "$sent"
    done
}

# arrives SITE SHA256: waits until the site holds it.
arrives() {
    local until=$((SECONDS + PATIENCE_S))
    # All of it is read: who ends early would end who writes, and that counts as a failure.
    until held "$1" | grep "^$2 " >/dev/null; do
        ((SECONDS < until)) || return 1
        sleep 0.5
    done
}

held() {
    project exec -T "$1" sh -c 'find received -type f -exec sha256sum {} +' 2>/dev/null
}

probe() {
    project exec -T hub python - "$@" <"$ROOT/scripts/probe.py"
}

project() {
    compose --project-name "$PROJECT" "$@"
}

end() {
    local code=$?
    if [[ -n $IS_UP ]]; then
        project logs --no-color >"$LOGS/compose.log" 2>&1 || true
        project down --volumes --timeout 10 >/dev/null 2>&1 || true
    fi
    engine_down
    exit "$code"
}

main "$@"
