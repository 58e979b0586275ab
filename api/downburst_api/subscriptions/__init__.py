"""Subscriptions of sites to feeds."""
