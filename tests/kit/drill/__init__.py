"""A drill: faults of a running hub, and the time until its operator sees each of them."""
