"""Circuits: who may reserve which rate when, and what becomes of each reservation. Nodes act; this decides."""
