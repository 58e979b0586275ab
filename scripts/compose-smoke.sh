#!/usr/bin/env bash
# Builds the image, starts docker-compose.yml under a name of its own, and checks that products reach the
# three sites, by multicast too. Then it kills servers and processes with -9 while products go in, and checks
# that every acknowledged product is at every site once, and that deliveries soon take no longer than before.
# It installs the tools that it needs, and removes everything at the end.
#
# With "bundle FILE" it makes an archive for machines without network instead (make air-gap), with "try FILE" it starts
# what is in one on an engine that has no image yet.
set -euo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"
# shellcheck source=scripts/engine.sh
source "$ROOT/scripts/engine.sh"
cd "$ROOT"

export DOWNBURST_HTTP_PORT=${DOWNBURST_HTTP_PORT:-17371}
PROJECT=downburst-smoke
SITES=(site-a site-b site-c)
# Beside the hub.
PARTS=(scheduler latency-service circuit-service alarm-service)
# Kafka, PostgreSQL, each process of ours, and the nodes of hub and sender, which these start again by themselves.
KILLED=(kafka ledger hub node-of-hub "${PARTS[@]}" sender node-of-sender site-a)
STARTED_S=60 PATIENCE_S=120 AWAY_S=3 QUICK_AGAIN_S=30
HINT="'$LOGS/compose.log' has what the containers said."
IS_UP='' PUTTING='' TRIED='' P99_MS=''

main() {
    trap end EXIT
    if [[ ${1:-} == try ]]; then
        try_bundle "$2"
        return
    fi
    engine
    base_images ""
    image
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
    step compose-up "Kafka, PostgreSQL, hub, ${PARTS[*]}, sender, source, three sites" "$HINT" \
        project up --detach --no-build
    step compose-well "products of the feed at ${SITES[*]}" "$HINT" all_are_well
    local part
    for part in "${PARTS[@]}"; do
        step "compose-begins-$part" "$part: at work" "$HINT" begins "$part" 0
    done
    local took=$((SECONDS - began))
    printf '  all well after %d s\n' "$took"
    ((took <= STARTED_S)) && return
    if is_busy; then
        printf '  not judged: this machine is busy (load %s)\n' "$(cut -d' ' -f1 /proc/loadavg)"
    else
        fail "The start took $took s, more than $STARTED_S s." "$HINT"
    fi
}

# More work waits than there are processors: how long something takes here says nothing.
is_busy() {
    (($(cut -d. -f1 /proc/loadavg) > 2 * $(nproc)))
}

all_are_well() {
    local site until=$((SECONDS + PATIENCE_S))
    for site in hub sender "${SITES[@]}"; do
        until [[ $("$DOCKER" inspect --format '{{.State.Health.Status}}' "$(containers "$site")") == healthy ]]; do
            ((SECONDS < until)) || return 1
            sleep 0.5
        done
    done
}

carries_by_multicast() {
    step compose-sender "the sender serves the sites" "$HINT" serves_all sender
    inside hub downburst plans pin DEMO multicast >/dev/null
    step compose-multicast "multicast between the containers" "$HINT" probe served DEMO multicast "${#SITES[@]}"
    local sent site
    sent=$(probe put-one DEMO smoke/large 5000000)
    for site in "${SITES[@]}"; do
        step "compose-large-$site" "a product of 5 MB at $site" "$HINT" arrives "$site" "$sent"
    done
}

# Ingests products one after the other while servers and processes are killed. Every acknowledged product
# reaches every site, once.
loses_nothing() {
    local acknowledged=$LOGS/compose-acknowledged name site
    # Not in the hub's container, which is killed as well.
    probe_in source put DEMO smoke/under-faults /tmp/enough >"$acknowledged" 2>"$LOGS/compose-put.log" &
    PUTTING=$!
    step compose-first "products before the first kill" "See $LOGS/compose-put.log." more_than "$acknowledged" 40
    P99_MS=$(probe_in source p99 DEMO 10)
    for name in "${KILLED[@]}"; do
        survives "$name"
    done
    one_scheduler_leads
    step compose-probes "all probes of the hub, those of the parts beside it among them" "$HINT" passes_its_probes
    inside source touch /tmp/enough
    wait "$PUTTING" || fail "A product was not acknowledged in time." "See $LOGS/compose-put.log."
    PUTTING=''
    for site in "${SITES[@]}"; do
        step "compose-all-$site" "$(wc -l <"$acknowledged") acknowledged products at $site, each once" "$HINT" \
            has_each_once "$site" "$acknowledged"
    done
}

# survives NAME: kills one with -9, and starts it again unless somebody else does.
survives() {
    local name=$1 began=$SECONDS since="its kill" before
    case $name in
    node-of-*) probe_in "${name#node-of-}" kill-node >/dev/null ;;
    sender)
        "$DOCKER" kill "$(containers sender)" >/dev/null
        # It stays away until the hub serves its sites.
        recovers sender-away "$began" "its kill"
        began=$SECONDS since="its start"
        "$DOCKER" start "$(containers sender)" >/dev/null
        step compose-sender-again "the sender serves the sites again" "$HINT" serves_all sender
        ;;
    *)
        before=$(begun "$name")
        "$DOCKER" kill "$(containers "$name")" >/dev/null
        sleep "$AWAY_S"
        "$DOCKER" start "$(containers "$name")" >/dev/null
        if [[ " ${PARTS[*]} " == *" $name "* ]]; then
            step "compose-begins-$name-again" "$name: at work again" "$HINT" begins "$name" "$before"
        fi
        ;;
    esac
    recovers "$name" "$began" "$since"
    step "compose-well-$name" "all well" "$HINT" all_are_well
}

# recovers WHAT SECOND SINCE: waits until a product that is put now is at all sites, then until p99 is as before.
recovers() {
    local what=$1 began=$2 since=$3 log=$LOGS/compose-p99-$1.log
    step "compose-after-$what" "$what: a new product at all sites" "$HINT" goes_everywhere "after-$what"
    printf '  %s: recovered %d s after %s\n' "$what" $((SECONDS - began)) "$since"
    if probe_in source p99-back DEMO "$P99_MS" "$QUICK_AGAIN_S" >"$log" 2>&1; then
        printf '  %s: %s recovery\n' "$what" "$(<"$log")"
    elif is_busy; then
        printf '  %s: p99 is not judged, this machine is busy (load %s)\n' "$what" "$(cut -d' ' -f1 /proc/loadavg)"
    else
        fail "$what: p99 is not back within $QUICK_AGAIN_S s of recovery: $(<"$log")" "$HINT"
    fi
}

# Two schedulers at once: one is at work; if it is killed the other one is, and it stands by when it comes back.
one_scheduler_leads() {
    local first second began
    step compose-two-schedulers "a second scheduler" "$HINT" \
        project up --detach --no-build --no-recreate --scale scheduler=2 scheduler
    first=$(schedulers_that 'at work as scheduler')
    step compose-stands-by "one of two schedulers stands by" "$HINT" has_other_scheduler "$first" 'this one stands by'
    began=$SECONDS
    "$DOCKER" kill "$first" >/dev/null
    step compose-takes-over "the other one takes over" "$HINT" has_other_scheduler "$first" 'at work as scheduler'
    recovers leading-scheduler "$began" "its kill"
    second=$(schedulers_that 'at work as scheduler' | grep -v "$first")
    "$DOCKER" start "$first" >/dev/null
    step compose-stands-by-again "the first one stands by" "$HINT" has_other_scheduler "$second" 'this one stands by'
    [[ $(schedulers_that 'at work as scheduler') == "$second" ]] || fail "Not one scheduler is at work." "$HINT"
}

# has_other_scheduler CONTAINER WORDS: waits until one that is not this one says so.
has_other_scheduler() {
    local until=$((SECONDS + PATIENCE_S))
    until schedulers_that "$2" | grep -v "$1" >/dev/null; do
        ((SECONDS < until)) || return 1
        sleep 0.2
    done
}

# schedulers_that WORDS: the containers whose last word on who is at work is this.
schedulers_that() {
    local one
    for one in $(containers scheduler); do
        "$DOCKER" logs "$one" 2>&1 | grep -E 'at work as scheduler|this one stands by' | tail -n 1 |
            sed -n "s/.*$1.*/$one/p"
    done
}

# begins PART TIMES: waits until it has begun its work more often than that.
begins() {
    local until=$((SECONDS + PATIENCE_S))
    until (($(begun "$1") > $2)); do
        ((SECONDS < until)) || return 1
        sleep 0.2
    done
}

# begun SERVICE: how often a part has begun its work as the active one.
begun() {
    "$DOCKER" logs "$(containers "$1")" 2>&1 | grep -c 'at work as' || true
}

# Waits until the hub is healthy; a part beside it without a sign of life is a probe that fails.
passes_its_probes() {
    local until=$((SECONDS + PATIENCE_S))
    until inside hub python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:7371/healthz', timeout=20)"; do
        ((SECONDS < until)) || return 1
        sleep 1
    done
}

# serves_all NODE: waits until all sites have the feed from there.
serves_all() {
    local site
    for site in "${SITES[@]}"; do
        probe_in "$site" served-by "$1:7370" DEMO || return 1
    done
}

# goes_everywhere ID: puts a product, and waits until all sites have it.
goes_everywhere() {
    local site
    probe_in source put-one DEMO "$1" 2000 || return 1
    for site in "${SITES[@]}"; do
        has_file "$site" "$1" || return 1
    done
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

# has_file SITE ID: waits until the site holds a product whose id is only of letters, digits, points and dashes.
has_file() {
    local until=$((SECONDS + PATIENCE_S))
    until inside "$1" find received -type f -name "*$2*" 2>/dev/null | grep . >/dev/null; do
        ((SECONDS < until)) || return 1
        sleep 0.1
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
    inside "$1" sh -c 'find received -type f -exec sha256sum {} +' 2>/dev/null
}

probe() {
    probe_in hub "$@"
}

# probe_in SERVICE ARGUMENT...: asks the hub from inside a container.
probe_in() {
    local service=$1
    shift
    inside "$service" python - "$@" <"$ROOT/scripts/probe.py"
}

# inside SERVICE COMMAND...: runs it in the service's container.
inside() {
    local container
    container=$(containers "$1")
    shift
    "$DOCKER" exec --interactive "$container" "$@"
}

# containers SERVICE: running or not. Compose takes a second of a processor to say as much.
containers() {
    "$DOCKER" ps --all --quiet --filter "label=com.docker.compose.project=$PROJECT" \
        --filter "label=com.docker.compose.service=$1"
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
    step bundle-images "${images[*]}" "Is there room in $folder?" \
        "$DOCKER" save --output "$folder/images.tar" "${images[@]}"
    step bundle-pack "$file" "Is there room in $(dirname "$file")?" tar -C "$folder" -czf "$file.part" .
    mv "$file.part" "$file"
    rm -rf "$folder"
    printf '  %s: %s MB\n' "$file" "$(du -m "$file" | cut -f1)"
}

# try_bundle FILE: what it holds runs on an engine without images, from its own folder.
try_bundle() {
    CACHE=$(mktemp -d -t downburst-tried.XXXXXX)
    TRIED=$CACHE
    mkdir "$CACHE/bundle"
    # shellcheck disable=SC2034 # for the functions of engine.sh
    OWN_ENGINE=yes
    engine
    step try-unpack "$1 unpacked" "Is it whole?" tar -C "$CACHE/bundle" -xzf "$1"
    [[ -z $("$DOCKER" images --quiet) ]] ||
        fail "The engine has images already." "It should have a data root of its own."
    step try-load "its images loaded" "See the log." "$DOCKER" load --input "$CACHE/bundle/images.tar"
    cd "$CACHE/bundle"
    starts
    echo "Bundle: runs."
}

end() {
    local code=$?
    # What was started is ended, however often this is asked to end.
    trap '' INT TERM
    cd "$ROOT"
    [[ -z $PUTTING ]] || kill "$PUTTING" 2>/dev/null || true
    if [[ -n $IS_UP ]]; then
        project logs --no-color >"$LOGS/compose.log" 2>&1 || true
        project down --volumes --timeout 10 >/dev/null 2>&1 || true
    fi
    engine_down
    [[ -z $TRIED ]] || rm -rf "$TRIED"
    exit "$code"
}

main "$@"
