#!/usr/bin/env bash
# Builds what charts and clusters are tested with from Go modules, into a folder outside of the repository:
#
#   scripts/cluster-tools.sh helm            Helm (two minutes of one processor)
#   scripts/cluster-tools.sh checks          kubeconform
#   scripts/cluster-tools.sh control-plane   API server, controller manager, scheduler (a quarter of an hour, once)
#   scripts/cluster-tools.sh node            kubelet
#
# What was built is not built again, and what was interrupted goes on where it was, by Go's own caches.
set -euo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/downburst-cluster
BIN=$CACHE/bin
KUBERNETES=1.35.4
HELM=3.22.0
KUBECONFORM=0.7.0
HINT="If a download failed, check the network (go env GOPROXY) and run it again; what was built is kept."

main() {
    command -v go >/dev/null || fail "Go was not found, which builds these tools." "Install Go 1.25 or later (https://go.dev)."
    mkdir -p "$BIN"
    exec 9>"$CACHE/lock"
    flock 9
    export CGO_ENABLED=0 GOFLAGS=-mod=mod GOTOOLCHAIN=auto
    local wanted
    for wanted in "${@:-helm}"; do
        case $wanted in
        helm) tool helm "helm.sh/helm/v3/cmd/helm@v$HELM" "Helm $HELM (some minutes the first time)" ;;
        checks) tool kubeconform "github.com/yannh/kubeconform/cmd/kubeconform@v$KUBECONFORM" "kubeconform" ;;
        control-plane)
            etcd
            kubernetes kube-apiserver "the API server (ten minutes or more the first time)"
            kubernetes kube-controller-manager "the controller manager"
            kubernetes kube-scheduler "Kubernetes' scheduler"
            ;;
        node) kubernetes kubelet "the kubelet" ;;
        *) fail "There is no '$wanted' here." "Choose helm, checks, control-plane or node." ;;
        esac
    done
}

# tool NAME MODULE SENTENCE: one program of a module that stands for itself.
tool() {
    is_built "$1" "$2" && return
    step "tool-$1" "$3" "$HINT" env -u GOFLAGS GOBIN="$BIN" go install -trimpath -ldflags '-s -w' "$2"
    echo "$2" >"$BIN/$1.version"
}

# kubernetes NAME SENTENCE: one program of Kubernetes, whose parts have to be named one by one (its module replaces them by
# folders of its repository).
kubernetes() {
    is_built "$1" "$KUBERNETES" && return
    [[ -f $CACHE/kubernetes-$KUBERNETES/go.sum ]] ||
        step kubernetes-module "Kubernetes $KUBERNETES by its modules" "$HINT" kubernetes_module
    step "tool-$1" "$2" "$HINT" build_of_kubernetes "$1"
    echo "$KUBERNETES" >"$BIN/$1.version"
}

is_built() {
    [[ -x $BIN/$1 && -f $BIN/$1.version && $(<"$BIN/$1.version") == "$2" ]]
}

kubernetes_module() {
    local folder=$CACHE/kubernetes-$KUBERNETES manifest part
    rm -rf "$folder" "$folder.part"
    mkdir -p "$folder.part" && cd "$folder.part" || return 1
    go mod init downburst.invalid/kubernetes || return 1
    manifest=$(go mod download -json "k8s.io/kubernetes@v$KUBERNETES" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
    while read -r part; do
        go mod edit -replace "$part=$part@v0.${KUBERNETES#1.}" || return 1
    done < <(sed -n 's#^\s*\(k8s.io/[a-z0-9./-]*\) => ./staging.*#\1#p' "$manifest")
    go mod edit -require "k8s.io/kubernetes@v$KUBERNETES"
    printf '//go:build tools\n\npackage tools\n\nimport (\n' >tools.go
    printf '\t_ "k8s.io/kubernetes/cmd/%s"\n' kube-apiserver kube-controller-manager kube-scheduler kubelet >>tools.go
    echo ')' >>tools.go
    go mod tidy && mv "$folder.part" "$folder"
}

build_of_kubernetes() {
    local version="-X k8s.io/component-base/version.gitVersion=v$KUBERNETES"
    version+=" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(cut -d. -f2 <<<"$KUBERNETES")"
    cd "$CACHE/kubernetes-$KUBERNETES" &&
        go build -trimpath -ldflags "-s -w $version" -o "$BIN/$1.part" "k8s.io/kubernetes/cmd/$1" && mv "$BIN/$1.part" "$BIN/$1"
}

etcd() {
    [[ -x /usr/bin/etcd ]] && return
    step etcd "Debian package: etcd-server" "Run by hand: apt-get install etcd-server" install_etcd
}

install_etcd() {
    as_root apt-get update -qq &&
        as_root env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends etcd-server
}

main "$@"
