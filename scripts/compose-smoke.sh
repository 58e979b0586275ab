#!/usr/bin/env bash
# Builds the image, starts docker-compose.yml under a name of its own, and looks that products reach the three sites, by
# multicast too; then kills servers and processes with -9 while products go in, and looks that each acknowledged one is at
# every site once. Installs what it needs, and takes everything down again.
#
# With "bundle FILE" it makes an archive for machines without network instead (make air-gap).
set -euo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"
# shellcheck source=scripts/engine.sh
source "$ROOT/scripts/engine.sh"
cd "$ROOT"

export DOWNBURST_HTTP_PORT=${DOWNBURST_HTTP_PORT:-17371}
PROJECT=downburst-smoke
SITES=(site-a site-b site-c)
# Kafka, PostgreSQL, each process of ours, and the hub's node, which the hub starts again by itself.
KILLED=(kafka ledger hub node scheduler latency-service site-a)
STARTED_S=60 PATIENCE_S=120 AWAY_S=3
HINT="'$LOGS/compose.log' has what the containers said."
IS_UP='' PUTTING=''

main() {
    trap end EXIT
    engine
    base_images
    step image "image downburst:local" "Read the build's end above." \
        "$DOCKER" build --tag downburst:local "${BUILD_OPTIONS[@]}" .
    if [[ ${1:-} == bundle ]]; then
        bundle "${2:-dist/downburst-air-gap.tar.gz}"
        return
    fi
    starts
    carries_by_multicast
    loses_nothing
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

# Products go in one after the other while servers and processes are killed; every acknowledged one is at every site, once.
loses_nothing() {
    local acknowledged=$LOGS/compose-acknowledged name site
    # Not in the hub's container, which is killed as well.
    probe_in source put DEMO smoke/under-faults /tmp/enough >"$acknowledged" 2>"$LOGS/compose-put.log" &
    PUTTING=$!
    step compose-first "products before the first kill" "See $LOGS/compose-put.log." more_than "$acknowledged" 40
    for name in "${KILLED[@]}"; do
        survives "$name" "$acknowledged"
    done
    project exec -T source touch /tmp/enough
    wait "$PUTTING" || fail "A product was not acknowledged in time." "See $LOGS/compose-put.log."
    PUTTING=''
    for site in "${SITES[@]}"; do
        step "compose-all-$site" "$(wc -l <"$acknowledged") acknowledged products at $site, each once" "$HINT" \
            has_each_once "$site" "$acknowledged"
    done
}

# survives NAME FILE: kills one with -9, starts it again, and waits until products are acknowledged and all is well.
survives() {
    local name=$1 acknowledged=$2 began=$SECONDS before
    if [[ $name == node ]]; then
        probe kill-node >/dev/null
    else
        project kill "$name" >/dev/null 2>&1
        sleep "$AWAY_S"
        project start "$name" >/dev/null 2>&1
    fi
    before=$(wc -l <"$acknowledged")
    step "compose-after-$name" "products after kill -9 of $name" "$HINT" more_than "$acknowledged" $((before + 20))
    step "compose-well-after-$name" "all well again" "$HINT" all_are_well
    printf '  %s: back %d s after its kill, %d s of them down\n' "$name" $((SECONDS - began)) \
        "$([[ $name == node ]] && echo 0 || echo "$AWAY_S")"
}

# more_than FILE LINES: waits until the file is that long.
more_than() {
    local until=$((SECONDS + PATIENCE_S))
    until (($(wc -l <"$1") >= $2)); do
        kill -0 "$PUTTING" 2>/dev/null && ((SECONDS < until)) || return 1
        sleep 0.2
    done
}

# has_each_once SITE FILE: waits until the site has all that the file lists; none of it may be there twice.
has_each_once() {
    local until=$((SECONDS + PATIENCE_S)) wanted lacking=-1 twice
    wanted=$(cut -d' ' -f1 "$2" | sort)
    while ((SECONDS < until)); do
        held "$1" | cut -d' ' -f1 | sort >"$LOGS/compose-held"
        lacking=$(comm -23 <(echo "$wanted") "$LOGS/compose-held" | wc -l)
        if ((lacking == 0)); then
            twice=$(comm -12 <(echo "$wanted") <(uniq -d "$LOGS/compose-held") | wc -l)
            echo "$twice are there twice"
            ((twice == 0))
            return
        fi
        sleep 1
    done
    echo "$lacking are lacking"
    return 1
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
    probe_in hub "$@"
}

# probe_in SERVICE ARGUMENT...: asks the hub from inside a container.
probe_in() {
    local service=$1
    shift
    project exec -T "$service" python - "$@" <"$ROOT/scripts/probe.py"
}

project() {
    compose --project-name "$PROJECT" "$@"
}

# bundle FILE: the images that docker-compose.yml names, with it and the chart, for machines without network.
bundle() {
    local file=$1 folder images
    mkdir -p "$(dirname "$file")"
    folder=$(mktemp -d -t downburst-bundle.XXXXXX)
    # Where the image comes with the bundle there is nothing to build it from.
    sed '/^  build: \.$/d' docker-compose.yml >"$folder/docker-compose.yml"
    cp -rL charts/downburst "$folder/chart"
    cp docs/air-gap.md "$folder/README.md"
    mapfile -t images < <(sed -n 's/^ *image: //p' docker-compose.yml | sort -u)
    step bundle-images "${images[*]}" "Is there room in $folder?" "$DOCKER" save --output "$folder/images.tar" "${images[@]}"
    step bundle-pack "$file" "Is there room in $(dirname "$file")?" tar -C "$folder" -czf "$file.part" .
    mv "$file.part" "$file"
    rm -rf "$folder"
    printf '  %s: %s MB\n' "$file" "$(du -m "$file" | cut -f1)"
}

end() {
    local code=$?
    [[ -z $PUTTING ]] || kill "$PUTTING" 2>/dev/null || true
    if [[ -n $IS_UP ]]; then
        project logs --no-color >"$LOGS/compose.log" 2>&1 || true
        project down --volumes --timeout 10 >/dev/null 2>&1 || true
    fi
    engine_down
    exit "$code"
}

main "$@"
