"""Plans and their costs."""
