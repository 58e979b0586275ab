#!/usr/bin/env bash
# Builds all files of a release in a folder of its own, lists their digests, and signs the list when given a key.
set -euo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"
cd "$ROOT"

VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
OUT=$ROOT/dist/release KEY='' DRY_RUN='' SEAL_ONLY=''
IDENTITY=release@downburst NAMESPACE=downburst-release
PARTS=(packages node python sbom)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

usage() {
    cat <<USAGE
Builds Downburst $VERSION: Debian packages, downburst-node, wheel and source, bill of materials, SHA256SUMS.

  scripts/release.sh [--out DIR] [--key FILE] [--seal-only] [--dry-run]

  --out DIR     where the files go (dist/release)
  --key FILE    private SSH key (ed25519) that signs SHA256SUMS; for a key of ssh-agent its public half.
                Without it nothing is signed
  --seal-only   builds nothing: lists and signs the files in DIR, on the machine that has the key, for example
  --dry-run     only lists the steps

A part that was built from the same commit is not built again. How a release is checked: SECURITY.md.
USAGE
}

main() {
    options "$@"
    [[ -z $KEY || -f $KEY ]] || fail "There is no key $KEY." "Make one: ssh-keygen -t ed25519 -f $KEY"
    [[ -z $KEY ]] || command -v ssh-keygen >/dev/null || fail "ssh-keygen is missing." "apt-get install openssh-client"
    if [[ -n $DRY_RUN ]]; then
        plan
        return
    fi
    mkdir -p "$OUT"
    if [[ -z $SEAL_ONLY ]]; then
        build
    fi
    seal
}

options() {
    while (($#)); do
        case $1 in
        --out) OUT=$(realpath -m "${2:?--out needs a folder}") && shift ;;
        --key) KEY=${2:?--key needs a file} && shift ;;
        --seal-only) SEAL_ONLY=yes ;;
        --dry-run) DRY_RUN=yes ;;
        --help | -h) usage && exit ;;
        *) usage >&2 && exit 2 ;;
        esac
        shift
    done
}

plan() {
    local part
    for part in "${PARTS[@]}"; do
        [[ -n $SEAL_ONLY ]] || echo "would build: $part$(is_built "$part" && echo ' (is there, from this commit)')"
    done
    echo "would write: $OUT/SHA256SUMS"
    echo "would sign:  $([[ -n $KEY ]] && echo "with $KEY" || echo 'no, there is no --key')"
}

build() {
    local part
    [[ -z $(git status --porcelain 2>/dev/null) ]] || fail "The work tree has changes that are not committed." \
        "Commit or stash them: a release is of a commit."
    for part in "${PARTS[@]}"; do
        if is_built "$part"; then
            echo "  $part: is there, from this commit"
            continue
        fi
        "part_$part"
        git rev-parse HEAD >"$(stamp_of "$part")"
    done
}

# Stamps lie beside the files that they are of, under a name that no list of files has.
stamp_of() {
    echo "$OUT/.built-$1"
}

is_built() {
    [[ -f $(stamp_of "$1") && $(<"$(stamp_of "$1")") == "$(git rev-parse HEAD)" ]]
}

part_packages() {
    rm -f "$OUT"/*.deb
    scripts/deb.sh "$OUT"
}

part_node() {
    [[ -x $TARGET/release/downburst-node ]] || fail "There is no downburst-node." "Run make setup first."
    install -m 0755 "$TARGET/release/downburst-node" "$OUT/downburst-node-$VERSION-linux-$(uname -m)"
}

part_python() {
    rm -f "$OUT"/*.whl "$OUT"/*.tar.gz
    step release-python "wheel and source" "See the log." "$VENV_PYTHON" -m hatchling build -d "$OUT"
}

part_sbom() {
    scripts/sbom.sh "$OUT/downburst-$VERSION.cdx.json"
}

seal() {
    rm -f "$OUT/SHA256SUMS" "$OUT/SHA256SUMS.sig"
    (cd "$OUT" && find . -maxdepth 1 -type f ! -name '.*' ! -name 'SHA256SUMS*' -printf '%f\n' |
        LC_ALL=C sort | xargs -r sha256sum) \
        >"$OUT/.sums"
    [[ -s $OUT/.sums ]] || fail "There is nothing in $OUT." "Leave --seal-only out to build it."
    mv "$OUT/.sums" "$OUT/SHA256SUMS"
    cat "$OUT/SHA256SUMS"
    if [[ -z $KEY ]]; then
        echo "$OUT/SHA256SUMS is NOT SIGNED: there was no --key."
        return
    fi
    ssh-keygen -q -Y sign -n "$NAMESPACE" -f "$KEY" "$OUT/SHA256SUMS"
    echo "$OUT/SHA256SUMS.sig signs it; check it as $IDENTITY in the namespace $NAMESPACE (SECURITY.md)."
}

main "$@"
