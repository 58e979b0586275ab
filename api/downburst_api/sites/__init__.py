"""Sites, their objects, and their paths."""
