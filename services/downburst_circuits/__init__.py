"""Circuits: reservations of rates for a time, and the life of each one. This package decides, nodes act."""
