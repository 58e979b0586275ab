"""Loads the latencies and receipts that the node hands over, once, and answers questions about them."""
