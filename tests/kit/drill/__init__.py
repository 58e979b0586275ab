"""A drill: faults of a running hub, and how soon its operator sees each of them."""
