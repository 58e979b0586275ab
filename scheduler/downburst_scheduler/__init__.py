"""Chooses the transport of every feed: traffic statistics, queue models, the planner and its loop."""
