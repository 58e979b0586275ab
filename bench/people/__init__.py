"""Questions of people: thirty days of latency on both databases."""
