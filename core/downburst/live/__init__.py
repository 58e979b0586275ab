"""What is going on right now, kept in memory and bounded."""
