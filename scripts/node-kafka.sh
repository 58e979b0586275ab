#!/usr/bin/env bash
# Builds downburst-node-kafka, the hub's node for feeds on Kafka, beside downburst-node.
set -euo pipefail
# shellcheck source=scripts/steps.sh
source "$(dirname "$0")/steps.sh"

pkg-config --exists openssl 2>/dev/null ||
    fail "OpenSSL's headers are missing, which TLS to the brokers needs." \
        "apt-get install build-essential pkg-config libssl-dev"
step node-kafka "downburst-node-kafka (a few minutes the first time)" "See the compiler's message." \
    cargo build --release --locked -p downburst-log-kafka --manifest-path "$ROOT/workers/Cargo.toml" \
    --target-dir "$TARGET"
