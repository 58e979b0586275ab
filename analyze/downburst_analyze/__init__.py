"""Analysis of recordings, their cost and latency by transport: `downburst analyze`."""
