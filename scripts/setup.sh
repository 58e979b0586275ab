#!/usr/bin/env bash
# Prepares everything that the named purpose needs. A second run finds it all done.
#
#   scripts/setup.sh demo       downburst-node, the page, the documentation, .venv (the default)
#   scripts/setup.sh docs       the documentation alone, and what builds it
#   scripts/setup.sh bench      the optimised programs of measurements as well
#   scripts/setup.sh tools      for tests: all but the programs, which are built beside the first tests
#   scripts/setup.sh test       tools, and the programs and tests of the crates
#   scripts/setup.sh test-all   test, and Helm for the tests of the chart
set -euo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"

NETWORK_HINT="If a download failed, check the network (or the mirror settings of this tool) and run it again."

main() {
    local purpose=${1:-demo}
    exec 9>"$ROOT/.cache/setup.lock"
    flock 9
    echo "Setting up ($purpose)"
    packages cc=build-essential
    python
    [[ $purpose == docs ]] || rust_and_node
    python_environment
    [[ $purpose == docs ]] || dashboard
    case $purpose in
    docs) documentation ;;
    demo) node_binary downburst-node && documentation ;;
    bench) node_binary downburst-node downburst-wire downburst-load downburst-swarm ;;
    tools) tools ;;
    test) tools && programs_to_test ;;
    test-all) tools && programs_to_test && helm && dex ;;
    *) fail "There is no set-up for '$purpose'." "Choose demo, docs, bench, tools, test or test-all." ;;
    esac
    echo "Set-up is complete ($purpose)."
}

# Servers and system tools that tests run beside the product. Tests skip, and name the reason, where one is missing.
tools() {
    optional_packages pkg-config=pkg-config
    openssl_headers || optional_packages no-headers-of-openssl=libssl-dev
    optional_packages mosquitto=mosquitto mosquitto_pub=mosquitto-clients nginx=nginx-light
    optional_packages java=openjdk-17-jre-headless mvn=maven openssl=openssl
    optional_packages ip=iproute2 nft=nftables ping=iputils-ping shellcheck=shellcheck chromium=chromium \
        mkfs.xfs=xfsprogs chronyc=chrony
    postgresql
    unpacked_prometheus
}

# packages COMMAND=PACKAGE...: installs the Debian packages of commands that are missing.
packages() {
    local missing
    missing=$(missing_packages "$@")
    [[ -z $missing ]] && return
    command -v apt-get >/dev/null || fail "Missing: $missing." "Install these with this system's package manager."
    # shellcheck disable=SC2086
    step apt "Debian packages: $missing" "Run by hand: sudo apt-get update && sudo apt-get install $missing" \
        install_packages $missing
}

# Tests start servers of their own; the one that Debian's package would start by itself is not wanted for that.
postgresql() {
    local settings=/etc/postgresql-common/createcluster.conf
    compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null && return
    if [[ ! -e $settings ]] && command -v apt-get >/dev/null; then
        as_root mkdir -p "${settings%/*}" && echo "create_main_cluster = false" | as_root tee "$settings" >/dev/null
    fi
    optional_packages postgres=postgresql
}

# Out of Debian's package, whose checksum apt checks, without installing it: that would start a server of its own.
unpacked_prometheus() {
    [[ -x $ROOT/.cache/promtool/promtool && -x $ROOT/.cache/prometheus/prometheus ]] && return
    command -v promtool >/dev/null && command -v prometheus >/dev/null && return
    printf '  Prometheus and promtool in .cache ... '
    if command -v apt-get >/dev/null && unpack_prometheus >"$LOGS/prometheus.log" 2>&1; then
        echo "done"
    else
        printf 'not there (%s); tests that need them will be skipped and say so\n' "$LOGS/prometheus.log"
    fi
}

unpack_prometheus() {
    local unpacked program
    unpacked=$(mktemp -d)
    (cd "$unpacked" && apt-get download prometheus && dpkg-deb --extract prometheus_*.deb .)
    for program in promtool prometheus; do
        mkdir -p "$ROOT/.cache/$program" && mv "$unpacked/usr/bin/$program" "$ROOT/.cache/$program/$program"
    done
    rm -rf "$unpacked"
}

# What the chart is rendered with, out of Go's modules, kept outside of this folder; two minutes the first time.
helm() {
    if ! command -v go >/dev/null; then
        echo "  no Go to build Helm with: tests of the chart's rendering will be skipped and say so"
        return
    fi
    "$ROOT/scripts/cluster-tools.sh" helm ||
        echo "  Helm is not there; tests of the chart's rendering will be skipped and say so"
}

# The provider of OpenID Connect at which tests sign in, from its sources; four minutes the first time.
dex() {
    [[ -n ${DOWNBURST_DEX:-} ]] && return
    if ! command -v go >/dev/null; then
        echo "  no Go to build dex with: tests of sign-in at a provider will be skipped and say so"
        return
    fi
    "$ROOT/scripts/cluster-tools.sh" dex ||
        echo "  dex is not there (DOWNBURST_DEX_SOURCE names a folder with its sources); its tests will be skipped"
}

optional_packages() {
    local missing
    missing=$(missing_packages "$@")
    [[ -z $missing ]] && return
    printf '  Debian packages for the tests: %s ... ' "$missing"
    # shellcheck disable=SC2086
    if command -v apt-get >/dev/null && install_packages $missing >"$LOGS/apt-test.log" 2>&1; then
        echo "done"
    else
        printf 'not installed (%s); tests that need them will be skipped and say so\n' "$LOGS/apt-test.log"
    fi
}

missing_packages() {
    local pair
    for pair in "$@"; do
        command -v "${pair%%=*}" >/dev/null || [[ -x /usr/sbin/${pair%%=*} ]] || printf '%s ' "${pair#*=}"
    done
}

install_packages() {
    as_root apt-get update -qq
    # Services of these packages are not started.
    as_root env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends ca-certificates "$@"
}

python() {
    local candidate
    for candidate in ${PYTHON:-} python3.11 python3.12 python3.13 python3; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            PYTHON=$candidate
            "$PYTHON" -c 'import ensurepip' 2>/dev/null || packages no-ensurepip=python3-venv
            return
        fi
    done
    fail "Python 3.11 or later was not found." \
        "Install it (Debian 12: apt-get install python3 python3-venv), or name one with PYTHON=/path/to/python."
}

rust_and_node() {
    at_least 1.88 "$(cargo --version 2>/dev/null | cut -d' ' -f2)" ||
        fail "Rust 1.88 or later was not found (cargo: $(cargo --version 2>/dev/null || echo none))." \
            "Install it with rustup (https://rustup.rs), or update it with: rustup update stable"
    at_least 20.19 "$(node --version 2>/dev/null | tr -d v)" ||
        fail "Node 20.19 or later was not found (node: $(node --version 2>/dev/null || echo none))." \
            "Install a current Node with npm (https://nodejs.org); Debian 12's own package is too old."
}

at_least() {
    [[ -n $2 && $(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n1) == "$1" ]]
}

python_environment() {
    local input
    input=$(digest requirements.lock requirements-build.lock)
    if [[ ! -x $VENV_PYTHON ]] || ! is_current python-packages "$input"; then
        [[ -x $VENV_PYTHON ]] || step venv "virtual environment .venv" "Is python3-venv installed?" \
            "$PYTHON" -m venv "$ROOT/.venv"
        "$VENV_PYTHON" -m pip --version >/dev/null 2>&1 ||
            step pip "pip in .venv" "Remove .venv and run it again." "$VENV_PYTHON" -m ensurepip
        # The lock is complete. Where pip looks for dependencies itself, it refuses releases newer than the lock.
        step python-packages "Python packages of requirements.lock" "$NETWORK_HINT" \
            "$VENV_PYTHON" -m pip install --disable-pip-version-check --no-input --require-hashes --no-deps \
            -r "$ROOT/requirements.lock" -r "$ROOT/requirements-build.lock"
        stamp python-packages "$input"
    fi
    input=$(digest pyproject.toml)
    if [[ ! -x $ROOT/.venv/bin/downburst ]] || ! is_current python-self "$input"; then
        step python-self "downburst itself, editable" "Remove .venv and run it again." \
            "$VENV_PYTHON" -m pip install --disable-pip-version-check --no-input --no-deps --no-build-isolation \
            -e "$ROOT"
        stamp python-self "$input"
    fi
}

# node_binary PROGRAM...: the optimised programs; a crate has its program's name.
node_binary() {
    local input sentence=$*
    input=$(digest workers/crates workers/Cargo.toml workers/Cargo.lock)
    if ! built_all release "$@" || ! is_current "node-$#" "$TARGET $input"; then
        [[ -x $TARGET/release/downburst-node ]] || sentence+=" (a few minutes the first time)"
        step node "${sentence// /, }" "$NETWORK_HINT" \
            cargo build --release --locked --manifest-path "$ROOT/workers/Cargo.toml" --target-dir "$TARGET" \
            "${@/#/-p}"
        stamp "node-$#" "$TARGET $input"
    fi
    node_beside_downburst release
}

# Programs that check themselves (overflows, assertions), built along with the crates' own tests: one build for both.
programs_to_test() {
    local input sentence="programs and tests of the crates" without_kafka=()
    input=$(digest workers/crates workers/Cargo.toml workers/Cargo.lock)
    openssl_headers || without_kafka=(--exclude downburst-log-kafka)
    if ! built_all debug downburst-{node,wire,load,swarm} || ! is_current programs-to-test "$TARGET $input"; then
        [[ -x $TARGET/debug/downburst-node ]] || sentence+=" (some minutes the first time)"
        step programs-to-test "$sentence" "$NETWORK_HINT" \
            cargo build --workspace "${without_kafka[@]}" --bins --tests --locked \
            --manifest-path "$ROOT/workers/Cargo.toml" --target-dir "$TARGET"
        stamp programs-to-test "$TARGET $input"
    fi
    is_current node-1 "$TARGET $input" || node_beside_downburst debug
}

# node_beside_downburst PROFILE: one `activate` gives both commands.
node_beside_downburst() {
    ln -sfn "$TARGET/$1/downburst-node" "$ROOT/.venv/bin/downburst-node"
}

# built_all PROFILE PROGRAM...: tells whether all of the programs are there.
built_all() {
    local profile=$1 program
    shift
    for program in "$@"; do
        [[ -x $TARGET/$profile/$program ]] || return 1
    done
}

documentation() {
    "$ROOT/scripts/docs.sh"
}

dashboard() {
    local input home=$ROOT/services/dashboard
    input=$(digest services/dashboard/package-lock.json)
    if [[ ! -d $home/node_modules ]] || ! is_current dashboard-packages "$input"; then
        step dashboard-packages "dashboard's packages" "$NETWORK_HINT" npm ci --prefix "$home" --no-audit --no-fund
        stamp dashboard-packages "$input"
    fi
    input=$(digest services/dashboard/{package-lock.json,src,index.html,docs.html,vite.config.ts,public})
    if [[ ! -f $home/dist/index.html ]] || ! is_current dashboard "$input"; then
        step dashboard "dashboard" "Remove services/dashboard/node_modules and run it again." \
            npm run build --prefix "$home"
        stamp dashboard "$input"
    fi
}

main "$@"
