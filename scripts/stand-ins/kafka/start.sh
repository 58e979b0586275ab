#!/usr/bin/env bash
# Starts a broker whose properties are told as in the public image: KAFKA_LOG_DIRS stands for log.dirs.
set -euo pipefail

PROPERTIES=/opt/kafka/config/server.properties
# shellcheck disable=SC2206 # several words on purpose
JAVA=(java ${KAFKA_HEAP_OPTS:-} -XX:+UseSerialGC -Dlog4j2.configurationFile=/opt/kafka/config/log4j2.properties
    -cp "/opt/kafka/libs/*")

while IFS='=' read -r name value; do
    case $name in
    KAFKA_HEAP_OPTS | KAFKA_OPTS) ;;
    KAFKA_*)
        name=${name#KAFKA_}
        name=${name//_/.}
        printf '%s=%s\n' "${name,,}" "$value"
        ;;
    esac
done < <(env) >"$PROPERTIES"

"${JAVA[@]}" kafka.tools.StorageTool format --ignore-formatted -t "$CLUSTER_ID" -c "$PROPERTIES"
exec "${JAVA[@]}" kafka.Kafka "$PROPERTIES"
