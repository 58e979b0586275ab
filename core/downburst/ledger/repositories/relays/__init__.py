"""Queries about relays, the ways of sites, and the log of tunnels."""
