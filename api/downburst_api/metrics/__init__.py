"""What Prometheus is told of a hub: gathered from the ledger, the present and the node when it is asked for."""
