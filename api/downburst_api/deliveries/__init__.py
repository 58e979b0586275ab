"""Where products are, and what sites lost."""
