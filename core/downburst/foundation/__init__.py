"""The ground: errors, clocks, names, bounds and units, which know nothing of the domain."""
