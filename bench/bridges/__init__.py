"""Sources of WIS2 beside programs that do the same."""
