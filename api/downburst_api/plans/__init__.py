"""Plans and what they cost."""
