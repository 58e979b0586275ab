"""Commands that run a hub, or show its overall state."""
