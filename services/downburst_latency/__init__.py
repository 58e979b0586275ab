"""Loads the node's batches of latencies and receipts, each once, and answers queries about them."""
