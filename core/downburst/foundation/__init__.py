"""The foundation: errors, clocks, names, bounds and units, independent of the domain."""
