"""Circuits: admission, the share beside greedy flows, small buffers, set-up."""
