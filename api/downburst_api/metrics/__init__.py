"""The hub's metrics for Prometheus, gathered from the ledger, the present and the node at each scrape."""
