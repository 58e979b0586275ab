"""Compares the retention of logs with the length of sites' outages."""
