"""The demonstration: a hub and its sites on one machine, real products, and an independent check."""
