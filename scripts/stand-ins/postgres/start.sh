#!/usr/bin/env bash
# Starts a server; the first time makes its role and its database. All of it is made aside and moved into place, so
# that one that was killed meanwhile begins anew.
set -euo pipefail

if [[ ! -s $PGDATA/PG_VERSION ]]; then
    made=$PGDATA/made.$$
    rm -rf "$PGDATA"/made.*
    initdb --pgdata "$made" --username "$POSTGRES_USER" --pwfile <(printf '%s' "$POSTGRES_PASSWORD") \
        --auth scram-sha-256 --encoding UTF8 --no-locale >/dev/null
    echo 'host all all all scram-sha-256' >>"$made/pg_hba.conf"
    pg_ctl --silent --wait --pgdata "$made" --options "-c listen_addresses= -k /tmp" start
    PGPASSWORD=$POSTGRES_PASSWORD createdb --host /tmp --username "$POSTGRES_USER" "${POSTGRES_DB:-$POSTGRES_USER}"
    pg_ctl --silent --wait --pgdata "$made" stop
    # The version comes last: it says that the rest is there.
    find "$made" -mindepth 1 -maxdepth 1 ! -name PG_VERSION -exec mv -t "$PGDATA" {} +
    mv "$made/PG_VERSION" "$PGDATA/"
    rmdir "$made"
fi
exec postgres -c listen_addresses='*' -k /tmp
