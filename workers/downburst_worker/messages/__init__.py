"""What agent and node say to each other, line by line."""
