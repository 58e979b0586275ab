"""Figures of traffic and latency shared by models and planner, and their wording."""
