#!/usr/bin/env bash
# Builds Debian packages in dist/ (or in the given folder): downburst (the hub, its services, its page, its
# nodes) and downburst-node (a receiving site). They fit this machine's releases of Debian and Python.
set -euo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"
cd "$ROOT"

VERSION=${DOWNBURST_PACKAGE_VERSION:-$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)}
OUT=${1:-dist}
MAINTAINER="Downburst's maintainers <maintainers@downburst.invalid>"
# The Python that hubs run with is Debian's.
PYTHON=/usr/bin/python3
STAGING='' ARCHITECTURE=''
# A machine may have both packages, so that each page belongs to one of them.
MANUAL_OF_SITES=(man1/downburst-node.1 man7/downburst-site-guide.7 man7/downburst-quick-start-site.7)
# Files are as old as the commit that they are of: the same sources make the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

main() {
    local program
    for program in dpkg-deb:dpkg dpkg-shlibdeps:dpkg-dev strip:binutils "$PYTHON:python3"; do
        command -v "${program%%:*}" >/dev/null || fail "${program%%:*} is missing." "apt-get install ${program##*:}"
    done
    [[ -x $TARGET/release/downburst-node ]] || fail "There is no downburst-node to pack." "Run make setup first."
    [[ -d dist/docs/man ]] || fail "There are no manual pages to pack." "Run make docs first."
    ARCHITECTURE=$(dpkg --print-architecture)
    trap 'rm -rf "$STAGING"' EXIT
    STAGING=$(mktemp -d -t downburst-deb.XXXXXX)
    mkdir -p "$OUT"
    node
    hub
}

node() {
    local root=$STAGING/node
    program downburst-node "$root/usr/bin"
    install -D -m 0644 -t "$root/usr/lib/systemd/system" packaging/systemd/downburst-site.service
    install -D -m 0640 packaging/node/site.conf "$root/etc/downburst/site.conf"
    install -D -m 0644 -t "$root/usr/share/doc/downburst-node" docs/site-guide.md
    manual "$root" "${MANUAL_OF_SITES[@]}"
    pack node downburst-node "$(libraries "$root/usr/bin/downburst-node"), passwd" <<'DESCRIPTION'
Description: receives meteorology feeds from a Downburst hub
 A receiving site of Downburst: it keeps a connection to its hub, takes
 products by unicast or multicast, and writes them to files or hands them
 to programs.
DESCRIPTION
}

hub() {
    local root=$STAGING/hub lib=$STAGING/hub/usr/lib/downburst minor python unit
    step deb-python "Python packages of the hub" "Check the network and run it again." python_packages "$lib"
    install -D -m 0644 packaging/hub/run.py "$lib/run.py"
    install -D -m 0755 /dev/stdin "$root/usr/bin/downburst" <<<"#!/bin/sh
exec $PYTHON -I /usr/lib/downburst/run.py \"\$@\""
    install -D -m 0755 packaging/hub/downburst-upgrade "$root/usr/sbin/downburst-upgrade"
    cp -r services/dashboard/dist "$lib/downburst/dashboard"
    cp -r dist/docs/html "$lib/downburst/guide"
    manual "$root"
    (cd "$root/usr/share/man" && rm -f "${MANUAL_OF_SITES[@]/%/.gz}")
    # A hub and its node speak one release's lines, so it has its own; a site on the same machine may have another.
    program downburst-node "$lib"
    if [[ -x $TARGET/release/downburst-node-kafka ]]; then
        program downburst-node-kafka "$lib"
    else
        echo "  without downburst-node-kafka, which feeds on Kafka need: make node-kafka builds it"
    fi
    for unit in hub scheduler latency-service circuit-service alarm-service sender; do
        install -D -m 0644 -t "$root/usr/lib/systemd/system" "packaging/systemd/downburst-$unit.service"
    done
    install -D -m 0640 packaging/hub/hub.toml "$root/etc/downburst/hub.toml"
    install -D -m 0644 -t "$root/usr/share/doc/downburst" docs/operator-guide.md docs/access.md
    minor=$("$PYTHON" -c 'import sys; print(sys.version_info.minor)')
    python="python3 (>= 3.$minor), python3 (<< 3.$((minor + 1)))"
    pack hub downburst "$(libraries "$lib"/downburst-node*), $python, passwd" <<'DESCRIPTION'
Description: distributes meteorology feeds from a hub to many receiving sites
 The hub of Downburst: it takes products in, chooses for each feed how they
 travel (unicast, circuits or reliable multicast), sends them, and records
 how late each came at each site.
DESCRIPTION
}

# manual ROOT [PAGE...]: compressed manual pages; all of them where none is named.
manual() {
    local root=$1 page pages=("${@:2}")
    ((${#pages[@]})) || mapfile -t pages < <(cd dist/docs/man && printf '%s\n' man*/*)
    for page in "${pages[@]}"; do
        mkdir -p "$root/usr/share/man/${page%/*}"
        gzip --best --no-name --stdout "dist/docs/man/$page" >"$root/usr/share/man/$page.gz"
    done
}

# program NAME FOLDER: a program of the build, without its lines for debuggers.
program() {
    install -D -m 0755 -t "$2" "$TARGET/release/$1"
    strip "$2/$1"
}

python_packages() {
    local lib=$1 pip=("$VENV_PYTHON" -m pip --disable-pip-version-check --no-input install --no-compile --target "$1")
    local release='import sys; print("%d.%d" % sys.version_info[:2])'
    if [[ $("$VENV_PYTHON" -c "$release") != "$("$PYTHON" -c "$release")" ]]; then
        echo ".venv has another Python than $PYTHON; remove it and run PYTHON=$PYTHON make setup"
        return 1
    fi
    "${pip[@]}" --only-binary :all: --require-hashes --no-deps -r requirements-image.lock &&
        "${pip[@]}" --no-deps --no-build-isolation --upgrade . &&
        rm -rf "${lib:?}/bin" && find "$lib" -name direct_url.json -delete && chmod -R a-x,a+X "$lib"
}

# libraries PROGRAM...: the packages that have the shared libraries of programs.
libraries() {
    mkdir -p "$STAGING/shlibs/debian" && echo "Source: downburst" >"$STAGING/shlibs/debian/control"
    (cd "$STAGING/shlibs" && dpkg-shlibdeps -O "$@" 2>/dev/null) | sed 's/^shlibs:Depends=//'
}

# pack FOLDER PACKAGE DEPENDS: writes what dpkg wants to know, and the package; reads its description.
pack() {
    local folder=$1 package=$2 depends=$3 root=$STAGING/$1 doc=$STAGING/$1/usr/share/doc/$2 script units
    local file=$OUT/${package}_${VERSION}_$ARCHITECTURE.deb
    units=$(cd "$root/usr/lib/systemd/system" && echo *.service)
    mkdir -p "$root/DEBIAN"
    for script in postinst prerm postrm; do
        sed "s#@UNITS@#$units#g" "packaging/$folder/$script" >"$root/DEBIAN/$script"
        chmod 0755 "$root/DEBIAN/$script"
    done
    (cd "$root" && find etc -type f -printf '/%p\n' | sort) >"$root/DEBIAN/conffiles"
    install -D -m 0644 packaging/copyright "$doc/copyright"
    install -D -m 0644 "packaging/$folder/lintian-overrides" "$root/usr/share/lintian/overrides/$package"
    debian_changelog "$package" | gzip --best --no-name >"$doc/changelog.gz"
    gzip --best --no-name --stdout CHANGELOG.md >"$doc/NEWS.md.gz"
    chmod -R go-w "$root"
    (cd "$root" && find usr -type f -exec md5sum {} + | sort -k2) >"$root/DEBIAN/md5sums"
    {
        printf '%s\n' "Package: $package" "Version: $VERSION" "Architecture: $ARCHITECTURE" "Maintainer: $MAINTAINER"
        printf '%s\n' "Section: net" "Priority: optional" "Depends: $depends"
        printf 'Installed-Size: %s\n' "$(du -sk --exclude=DEBIAN "$root" | cut -f1)"
        cat
    } >"$root/DEBIAN/control"
    step "deb-$package" "$file" "See the log." dpkg-deb --root-owner-group -Zxz -z3 --build "$root" "$file"
}

debian_changelog() {
    printf '%s (%s) stable; urgency=medium\n\n  * NEWS.md has what changes.\n\n' "$1" "$VERSION"
    printf ' -- %s  %s\n' "$MAINTAINER" "$(date --utc --rfc-email --date "@$SOURCE_DATE_EPOCH")"
}

main "$@"
