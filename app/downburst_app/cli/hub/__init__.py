"""Commands that run a hub, and look at it as a whole."""
