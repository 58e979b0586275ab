"""Deliveries of products, and sites' losses."""
