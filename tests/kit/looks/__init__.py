"""Looks of the page: hubs in fixed states at a fixed time, and pictures of their pages as grids of grey."""
