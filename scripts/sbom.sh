#!/usr/bin/env bash
# Writes the software bill of materials (CycloneDX) into dist/, or to the file that is named, and validates it against
# CycloneDX's own schema, with a library that is kept in .cache.
set -euo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"
cd "$ROOT"

LIBRARY="cyclonedx-python-lib[json-validation]==11.12.0"
PYTHON=$ROOT/.cache/sbom/bin/python
OUT=${1:-dist/downburst-$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml).cdx.json}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

"$VENV_PYTHON" scripts/sbom.py "$OUT"
if [[ ! -x $PYTHON ]] || ! is_current sbom "$LIBRARY"; then
    step sbom-venv "virtual environment .cache/sbom" "Is python3-venv installed?" "$VENV_PYTHON" -m venv .cache/sbom
    step sbom-library "CycloneDX's library in .cache/sbom" "Check the network and run it again." \
        "$PYTHON" -m pip install --disable-pip-version-check "$LIBRARY"
    stamp sbom "$LIBRARY"
fi
"$PYTHON" scripts/validate_sbom.py "$OUT"
