"""Figures of traffic and latency that models and planner share, and their wording."""
