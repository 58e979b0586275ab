#!/usr/bin/env bash
# Runs what needs the servers of a cluster, each started for it on the loopback interface:
#
#   scripts/test-cluster.sh            all of it
#   scripts/test-cluster.sh contract   feeds' logs on a real Kafka: the tests alone, without figures
#   scripts/test-cluster.sh chart      the chart on Kubernetes' own API server, and as root its pods on a kubelet with
#                                      containerd; both are built once (scripts/cluster-tools.sh)
#   scripts/test-cluster.sh built      the same of what was built before; skipped with the reason where it was not;
#                                      what follows is for pytest
set -euo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"

MANIFEST=$ROOT/workers/Cargo.toml
JARS=$ROOT/.cache/peers/kafka
DIRECTORY='' BROKER=''
LONGEST_S=900 BROKER_START_S=120

main() {
    case ${1:-all} in
    contract) logs_on_kafka contract ;;
    chart) chart ;;
    built)
        "$ROOT/scripts/cluster-tools.sh" built ||
            skipped "Kubernetes' control plane, which takes a quarter of an hour to build, is" \
                "it once by make test-cluster"
        chart "$@"
        ;;
    all)
        # What one of them lacks the other may have.
        (logs_on_kafka all)
        (chart)
        ;;
    *) fail "There is no '$1' here." "Choose contract, chart or built, or name none." ;;
    esac
}

logs_on_kafka() {
    local purpose=$1
    needs java "a Java runtime of release 17 or later (apt-get install openjdk-17-jre-headless)"
    needs mvn "Maven, for the broker's packages (apt-get install maven)"
    needs cc "a C compiler and make, for librdkafka (apt-get install build-essential)"
    needs pkg-config "pkg-config, which finds OpenSSL (apt-get install pkg-config)"
    pkg-config --exists openssl || skipped "OpenSSL's headers are" "libssl-dev (apt-get install libssl-dev)"
    trap end EXIT
    [[ -f $JARS/done ]] || step kafka-jars "Kafka's packages" "Check the network, then run it again." fetch_broker
    step kafka-build "the log on Kafka (a few minutes the first time)" "See the compiler's message." \
        kafka_cargo test --no-run
    local ports
    read -r -a ports < <(free_ports)
    start_broker "${ports[@]}"
    export DOWNBURST_KAFKA=127.0.0.1:${ports[0]}
    kafka_cargo test --no-fail-fast
    [[ $purpose == contract ]] || figures
}

# chart [built [ARGUMENT...]]: with `built` no node is built; the arguments are for pytest.
chart() {
    needs go "Go 1.25 or later (https://go.dev), which builds Kubernetes' API server"
    needs openssl "OpenSSL (apt-get install openssl)"
    "$ROOT/scripts/cluster-tools.sh" helm checks control-plane
    cd "$ROOT"
    trap remove_archive EXIT
    local purpose=""
    [[ ${1:-} == built ]] && purpose="test"
    [[ $purpose == test || $(id -u) -ne 0 ]] || "$ROOT/scripts/cluster-tools.sh" node
    if [[ $(id -u) -eq 0 ]] && "$ROOT/scripts/cluster-tools.sh" node-built; then
        DIRECTORY=$(mktemp -d -t downburst-image.XXXXXX)
        export DOWNBURST_IMAGE_ARCHIVE=${DOWNBURST_IMAGE_ARCHIVE:-$DIRECTORY/downburst.tar}
        [[ -f $DOWNBURST_IMAGE_ARCHIVE ]] || (image_archive "$purpose")
    fi
    "$VENV_PYTHON" -m pytest tests/cluster "${@:2}"
}

# The engine is there for the image alone, and ends before the tests begin.
image_archive() {
    # shellcheck source=scripts/engine.sh
    source "$ROOT/scripts/engine.sh"
    trap engine_down EXIT
    engine
    base_images "$1"
    image
    step image-archive "its archive" "Is there a gigabyte of room in ${TMPDIR:-/tmp}?" \
        "$DOCKER" save --output "$DOWNBURST_IMAGE_ARCHIVE" downburst:local
}

remove_archive() {
    [[ -z $DIRECTORY ]] || rm -rf "$DIRECTORY"
}

# needs COMMAND WHAT: skips everything, with the reason, where the command is missing.
needs() {
    command -v "$1" >/dev/null || skipped "$1 is" "$2"
}

# skipped WHAT REMEDY: ends the script.
skipped() {
    [[ ${DOWNBURST_SKIP:-} == never ]] && fail "$1 missing, and DOWNBURST_SKIP=never forbids to skip." "Install $2."
    printf 'SKIPPED cluster tests: %s missing; install %s.\n' "$1" "$2" >&2
    exit 0
}

fetch_broker() {
    mvn -q -B -f "$ROOT/bench/peers/kafka/pom.xml" dependency:copy-dependencies -DoutputDirectory="$JARS" \
        -DincludeScope=runtime && touch "$JARS/done"
}

# By names of tests, not of the crate: alone it would be built anew, with fewer features of what it depends on.
kafka_cargo() {
    local command=$1
    shift
    timeout "$LONGEST_S" cargo "$command" --workspace --test kafka_contract --test kafka_shared --locked \
        --manifest-path "$MANIFEST" --target-dir "$TARGET" "$@"
}

figures() {
    timeout "$LONGEST_S" cargo run --quiet -p downburst-log-kafka --example figures --locked \
        --manifest-path "$MANIFEST" --target-dir "$TARGET"
}

# Two ports that nobody listens on.
free_ports() {
    python3 - <<'PYTHON'
import socket
with socket.socket() as one, socket.socket() as two:
    one.bind(("127.0.0.1", 0))
    two.bind(("127.0.0.1", 0))
    print(one.getsockname()[1], two.getsockname()[1])
PYTHON
}

# start_broker CLIENT_PORT CONTROLLER_PORT: one node that is broker and controller, its data in a temporary directory.
start_broker() {
    DIRECTORY=$(mktemp -d -t downburst-kafka.XXXXXX)
    configuration "$@" >"$DIRECTORY/server.properties"
    local java=(java -Xms128m -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$JARS/*")
    step kafka-format "a broker's empty storage" "Is Java of release 17 or later?" \
        "${java[@]}" kafka.tools.StorageTool format -t DownburstClusterTest00 -c "$DIRECTORY/server.properties"
    "${java[@]}" kafka.Kafka "$DIRECTORY/server.properties" >"$LOGS/kafka-broker.log" 2>&1 </dev/null &
    BROKER=$!
    step kafka-start "a broker on port $1" "See $LOGS/kafka-broker.log." wait_for_port "$1"
}

configuration() {
    cat <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$2
listeners=PLAINTEXT://127.0.0.1:$1,CONTROLLER://127.0.0.1:$2
advertised.listeners=PLAINTEXT://127.0.0.1:$1
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs=$DIRECTORY/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
log.cleaner.dedupe.buffer.size=16777216
auto.create.topics.enable=false
PROPERTIES
}

wait_for_port() {
    local until=$((SECONDS + BROKER_START_S))
    until (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; do
        kill -0 "$BROKER" && ((SECONDS < until)) || return 1
        sleep 0.2
    done
}

end() {
    if [[ -n $BROKER ]]; then
        kill "$BROKER" 2>/dev/null || true
        wait "$BROKER" || true
    fi
    [[ -z $DIRECTORY ]] || rm -rf "$DIRECTORY"
}

main "$@"
