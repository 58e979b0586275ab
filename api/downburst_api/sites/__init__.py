"""Sites, what belongs to them, and the way to them."""
