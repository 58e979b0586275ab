"""What the lines of sites carry."""
