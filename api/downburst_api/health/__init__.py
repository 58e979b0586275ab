"""Whether the hub works."""
