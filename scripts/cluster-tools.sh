#!/usr/bin/env bash
# Builds the tools to test charts, clusters and sign-in from Go modules, into a folder outside of the repository:
#
#   scripts/cluster-tools.sh helm            Helm (two minutes of one processor)
#   scripts/cluster-tools.sh checks          kubeconform
#   scripts/cluster-tools.sh control-plane   API server, controller manager, scheduler (a quarter of an hour, once)
#   scripts/cluster-tools.sh node            kubelet, kube-proxy, kubectl, CoreDNS; containerd etc. from Debian
#   scripts/cluster-tools.sh dex             dex, a provider of OpenID Connect, from its sources (four minutes)
#   scripts/cluster-tools.sh built           builds nothing: whether Helm, kubeconform and the control plane are there
#   scripts/cluster-tools.sh node-built      builds nothing: whether all of a node is there as well
#
# Finished programs are not built again, and an interrupted build resumes, by Go's own caches.
set -euo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/downburst-cluster
BIN=$CACHE/bin
HELM=3.22.0
KUBECONFORM=0.7.0
HELM_MODULE=helm.sh/helm/v3/cmd/helm@v$HELM
KUBECONFORM_MODULE=github.com/yannh/kubeconform/cmd/kubeconform@v$KUBECONFORM
KUBERNETES=1.35.4
MODULE=$CACHE/kubernetes-$KUBERNETES
COREDNS=1.14.3
DEX=2.45.0
# A folder or repository with dex's sources; modules that replace others can't be installed by their names.
DEX_SOURCE=${DOWNBURST_DEX_SOURCE:-https://github.com/dexidp/dex}
PARTS=(kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl)
HINT="If a download failed, check the network (go env GOPROXY) and run it again; what was built is kept."

main() {
    case ${1:-} in
    built) all_built; return ;;
    node-built) all_built && node_built; return ;;
    esac
    command -v go >/dev/null ||
        fail "Go, which builds these tools, was not found." "Install Go 1.25 or later (https://go.dev)."
    mkdir -p "$BIN"
    exec 9>"$CACHE/lock"
    flock 9
    export CGO_ENABLED=0 GOTOOLCHAIN=auto
    local wanted
    for wanted in "${@:-helm}"; do
        case $wanted in
        helm) tool helm "$HELM_MODULE" "Helm $HELM (some minutes the first time)" ;;
        checks) tool kubeconform "$KUBECONFORM_MODULE" "kubeconform $KUBECONFORM" ;;
        control-plane)
            debian_package etcd=etcd-server
            part kube-apiserver "Kubernetes' API server (ten minutes or more the first time)"
            part kube-controller-manager "its controller manager"
            part kube-scheduler "its scheduler"
            ;;
        node)
            part kubelet "its kubelet"
            part kube-proxy "its proxy"
            part kubectl "its command"
            own coredns "CoreDNS $COREDNS" "$COREDNS" build_coredns
            own pause "the first process of pods" "$(digest scripts/go/pause.go)" build_pause
            local package
            for package in containerd runc conntrack iptables; do
                debian_package "$package=$package"
            done
            [[ -x /usr/lib/cni/bridge ]] || step apt-cni "Debian package: containernetworking-plugins" \
                "Run by hand: apt-get install containernetworking-plugins" install containernetworking-plugins
            ;;
        dex) own dex "dex, from $DEX_SOURCE (four minutes the first time)" "$DEX_SOURCE $DEX" build_dex ;;
        *) fail "There is no '$wanted' here." "Choose helm, checks, control-plane, node or dex." ;;
        esac
    done
}

# tool NAME MODULE SENTENCE: one program of a module that stands for itself.
tool() {
    is_built "$1" "$2" && return
    step "tool-$1" "$3" "$HINT" env GOBIN="$BIN" go install -trimpath -ldflags '-s -w' "$2"
    echo "$2" >"$BIN/$1.version"
}

# part NAME SENTENCE: one program of Kubernetes.
part() {
    is_built "$1" "$KUBERNETES" && return
    grep -qs "/$1\"" "$MODULE/tools.go" ||
        step kubernetes-module "Kubernetes $KUBERNETES by its modules" "$HINT" write_module
    step "tool-$1" "$2" "$HINT" build_part "$1"
    echo "$KUBERNETES" >"$BIN/$1.version"
}

# own NAME SENTENCE VERSION COMMAND...: one program that is built by a function below.
own() {
    local name=$1 sentence=$2 version=$3
    shift 3
    is_built "$name" "$version" && return
    step "tool-$name" "$sentence" "$HINT" "$@"
    echo "$version" >"$BIN/$name.version"
}

all_built() {
    local name
    is_built helm "$HELM_MODULE" && is_built kubeconform "$KUBECONFORM_MODULE" && command -v etcd >/dev/null || return 1
    for name in kube-apiserver kube-controller-manager kube-scheduler; do
        is_built "$name" "$KUBERNETES" || return 1
    done
}

node_built() {
    local name
    is_built coredns "$COREDNS" && [[ -x $BIN/pause && -x /usr/lib/cni/bridge ]] || return 1
    for name in kubelet kube-proxy kubectl; do
        is_built "$name" "$KUBERNETES" || return 1
    done
    for name in containerd runc conntrack iptables; do
        command -v "$name" >/dev/null || return 1
    done
}

is_built() {
    [[ -x $BIN/$1 && -f $BIN/$1.version && $(<"$BIN/$1.version") == "$2" ]]
}

# A module that requires Kubernetes has to name the versions of its parts, which Kubernetes itself replaces by folders.
write_module() {
    local manifest path
    rm -rf "$MODULE" "$MODULE.part"
    mkdir -p "$MODULE.part" && cd "$MODULE.part" && go mod init downburst.invalid/kubernetes || return 1
    manifest=$(go mod download -json "k8s.io/kubernetes@v$KUBERNETES" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
    while read -r path; do
        go mod edit -replace "$path=$path@v0.${KUBERNETES#1.}" || return 1
    done < <(sed -n 's#^\s*\(k8s.io/[a-z0-9./-]*\) => ./staging.*#\1#p' "$manifest")
    go mod edit -require "k8s.io/kubernetes@v$KUBERNETES"
    printf '//go:build tools\n\npackage tools\n\nimport (\n' >tools.go
    printf '\t_ "k8s.io/kubernetes/cmd/%s"\n' "${PARTS[@]}" >>tools.go
    echo ')' >>tools.go
    go mod tidy && mv "$MODULE.part" "$MODULE"
}

build_part() {
    local version="-X k8s.io/component-base/version.gitVersion=v$KUBERNETES"
    version+=" -X k8s.io/component-base/version.gitMajor=1"
    version+=" -X k8s.io/component-base/version.gitMinor=$(cut -d. -f2 <<<"$KUBERNETES")"
    cd "$MODULE" &&
        go build -trimpath -ldflags "-s -w $version" -o "$BIN/$1.part" "k8s.io/kubernetes/cmd/$1" &&
        mv "$BIN/$1.part" "$BIN/$1"
}

build_coredns() {
    local module=$CACHE/coredns-$COREDNS
    rm -rf "$module" && mkdir -p "$module" && cp "$ROOT/scripts/go/coredns.go" "$module/main.go" && cd "$module" &&
        go mod init downburst.invalid/coredns && go get "github.com/coredns/coredns@v$COREDNS" && go mod tidy &&
        go build -trimpath -ldflags '-s -w' -o "$BIN/coredns" .
}

# A folder of sources is built as it is; of a repository, the release.
build_dex() {
    local source=$DEX_SOURCE
    if [[ ! -f $source/go.mod ]]; then
        source=$CACHE/dex-$DEX
        rm -rf "$source"
        timeout 120 git clone --quiet --depth 1 --branch "v$DEX" "$DEX_SOURCE" "$source" || return 1
    fi
    cd "$source" && GOMAXPROCS=1 go build -p 1 -trimpath -ldflags '-s -w' -o "$BIN/dex" ./cmd/dex
}

build_pause() {
    go build -trimpath -ldflags '-s -w' -o "$BIN/pause" "$ROOT/scripts/go/pause.go"
}

# debian_package COMMAND=PACKAGE: installs a server's package without starting the server.
debian_package() {
    command -v "${1%%=*}" >/dev/null && return
    step "apt-${1#*=}" "Debian package: ${1#*=}" "Run by hand: apt-get install ${1#*=}" install "${1#*=}"
}

install() {
    as_root apt-get update -qq &&
        as_root env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1"
}

main "$@"
