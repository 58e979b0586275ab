"""Decides for every feed how its bytes travel: traffic statistics, queue models, the planner and its loop."""
