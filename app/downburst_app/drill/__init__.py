"""A restore drill: a backup becomes a hub in a directory of its own, is compared and tried, and is thrown away."""
