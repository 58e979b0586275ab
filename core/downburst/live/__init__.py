"""The present state of the hub, in memory and bounded."""
