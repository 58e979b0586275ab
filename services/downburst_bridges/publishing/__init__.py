"""Publishers of WIS2: products of a feed, announced at the hub's own broker."""
