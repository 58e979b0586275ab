# shellcheck shell=bash
# Sourced after steps.sh: a Docker engine for as long as a script runs, and base images where no registry is reached.
#
# A running engine is used as it is, unless OWN_ENGINE is set. Otherwise Debian's is installed and started,
# with its images in CACHE. It ends with the script, by its process id, and its changes in the root namespace
# (FORWARD's policy, ip_forward) are undone.

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/downburst-cluster
ENGINE_STATE='' ENGINE_PID='' FORWARD_POLICY='' IP_FORWARD=''
ENGINE_START_S=60 PULL_S=60 OWN_ENGINE=${OWN_ENGINE:-}
# Debian's client builds by its engine's own BuildKit; a later one asks for a plugin that may not be there.
DOCKER=docker
export DOCKER_BUILDKIT=1

# engine: makes DOCKER answer. engine_down takes back what it did.
engine() {
    mkdir -p "$CACHE"
    if [[ -z $OWN_ENGINE ]] && timeout 10 docker info >/dev/null 2>&1; then
        echo "  Docker's engine on this machine is used"
        return
    fi
    [[ $(id -u) -eq 0 ]] || fail "No Docker engine answers, and only root can start one." \
        "Start one, or run this as root."
    [[ -x /usr/sbin/dockerd && -x /usr/bin/docker-compose ]] ||
        step engine-install "Debian packages: docker.io docker-compose" "$ENGINE_HINT" \
            install_quietly docker.io docker-compose iptables
    [[ -x /usr/bin/docker ]] && DOCKER=/usr/bin/docker
    step engine-start "Docker's engine, its images in $CACHE/engine" "See $LOGS/dockerd.log." start_engine
    export DOCKER_HOST=unix://$ENGINE_STATE/docker.sock
}

ENGINE_HINT="Run by hand: apt-get update && apt-get install docker.io docker-compose"

# install_quietly PACKAGE...: installs Debian packages; a service that comes with one is not started.
install_quietly() {
    apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

start_engine() {
    FORWARD_POLICY=$(iptables -S FORWARD | awk '$1 == "-P" { print $3 }')
    IP_FORWARD=$(</proc/sys/net/ipv4/ip_forward)
    ENGINE_STATE=$(mktemp -d -t downburst-engine.XXXXXX)
    setsid /usr/sbin/dockerd --data-root "$CACHE/engine" --exec-root "$ENGINE_STATE/exec" \
        --pidfile "$ENGINE_STATE/pid" --host "unix://$ENGINE_STATE/docker.sock" >"$LOGS/dockerd.log" 2>&1 </dev/null &
    ENGINE_PID=$!
    local until=$((SECONDS + ENGINE_START_S))
    until "$DOCKER" --host "unix://$ENGINE_STATE/docker.sock" info >/dev/null 2>&1; do
        kill -0 "$ENGINE_PID" && ((SECONDS < until)) || return 1
        sleep 0.2
    done
}

# engine_down: ends the engine if it was started here, and puts back what it changed.
engine_down() {
    [[ -n $ENGINE_PID ]] || return 0
    kill "$ENGINE_PID" 2>/dev/null || true
    wait "$ENGINE_PID" 2>/dev/null || true
    ip link delete docker0 2>/dev/null || true
    iptables-save | grep -vi docker | iptables-restore || true
    iptables -P FORWARD "${FORWARD_POLICY:-ACCEPT}"
    echo "${IP_FORWARD:-0}" >/proc/sys/net/ipv4/ip_forward
    rm -rf "$ENGINE_STATE"
    ENGINE_PID=''
}

# compose ARGUMENT...: Compose in whichever form this machine has it.
compose() {
    if [[ -z $ENGINE_PID ]] && docker compose version >/dev/null 2>&1; then
        docker compose "$@"
    else
        docker-compose "$@"
    fi
}

# base_images: brings the images that Dockerfile and docker-compose.yml name; where no registry answers, stand-ins are
# made of Debian's packages under the same names, and BUILD_OPTIONS takes programs and page from this machine's build.
# base_images test: takes the programs that tests have built, which check themselves, if they are there.
base_images() {
    local purpose=${1:-}
    BUILD_OPTIONS=()
    if timeout "$PULL_S" "$DOCKER" pull --quiet postgres:15-bookworm >/dev/null 2>&1; then
        return
    fi
    echo "  no registry answers: base images are made of Debian's packages"
    [[ -x /usr/bin/mmdebstrap ]] ||
        step mmdebstrap "Debian package: mmdebstrap" "$ENGINE_HINT" install_quietly mmdebstrap
    has_image debian:bookworm-slim || step base-debian "image debian:bookworm-slim (a minute or more)" \
        "Check the network." import_debian
    stand_in python python:3.11-slim-bookworm /etc/ssl/certs/ca-certificates.crt
    stand_in postgres postgres:15-bookworm
    [[ -e $CACHE/kafka-jars/done ]] || step base-jars "Kafka's packages, from Maven" "Check the network." fetch_jars
    stand_in kafka apache/kafka:4.1.1 "$CACHE/kafka-jars" "$ROOT/tests/kit/kafka-log4j2.properties"
    BUILD_OPTIONS=(--build-arg "PROGRAMS=programs-of-this-machine" --build-arg "PAGE=page-of-this-machine")
    if [[ $purpose == test && -x $TARGET/debug/downburst-node && -x $TARGET/debug/downburst-node-kafka ]]; then
        "$ROOT/scripts/setup.sh" test
        BUILD_OPTIONS+=(--build-arg "PROFILE=debug")
    else
        "$ROOT/scripts/setup.sh" demo
        "$ROOT/scripts/node-kafka.sh"
    fi
}

# image: builds downburst:local upon the images that base_images brought.
image() {
    step image "image downburst:local" "Read the build's end above." \
        "$DOCKER" build --tag downburst:local "${BUILD_OPTIONS[@]}" "$ROOT"
}

has_image() {
    "$DOCKER" image inspect "$1" >/dev/null 2>&1
}

import_debian() {
    local archive=$CACHE/debian.tar
    mmdebstrap --variant=minbase --include=ca-certificates --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' bookworm "$archive" &&
        "$DOCKER" import --change 'CMD ["bash"]' "$archive" debian:bookworm-slim && rm -f "$archive"
}

# stand_in NAME IMAGE FILE_OR_FOLDER...: builds one of scripts/stand-ins, with what it copies, unless it is there.
stand_in() {
    local name=$1 image=$2
    shift 2
    has_image "$image" && return
    step "base-$name" "stand-in for $image" "See the log." build_stand_in "$name" "$image" "$@"
}

build_stand_in() {
    local context name=$1 image=$2 extra
    shift 2
    context=$(mktemp -d -t downburst-stand-in.XXXXXX)
    cp "$ROOT/scripts/stand-ins/$name/"* "$context/"
    for extra in "$@"; do
        case $extra in
        */kafka-jars) cp -r "$extra" "$context/libs" ;;
        *log4j2.properties) cp "$extra" "$context/log4j2.properties" ;;
        *) cp "$extra" "$context/" ;;
        esac
    done
    "$DOCKER" build --tag "$image" "$context" && rm -rf "$context"
}

fetch_jars() {
    mvn -q -B -f "$ROOT/bench/peers/kafka/pom.xml" dependency:copy-dependencies -DoutputDirectory="$CACHE/kafka-jars" \
        -DincludeScope=runtime && touch "$CACHE/kafka-jars/done"
}
