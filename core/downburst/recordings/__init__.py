"""What was recorded elsewhere: traces of arrivals, logs of transfers, statistics of LDMs."""
