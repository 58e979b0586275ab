"""The composition roots: each process of a hub, assembled from its parts."""
