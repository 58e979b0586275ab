"""External recordings: traces of arrivals, logs of transfers, statistics of LDMs."""
