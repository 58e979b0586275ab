"""Paths: data connections, learned TCP profiles, the tracer's cost, forecasts."""
