"""The demonstration: a hub and its sites on one machine, real products, and a check that trusts no report."""
