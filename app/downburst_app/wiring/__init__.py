"""The composition roots: each process of a hub out of its parts."""
