"""Commands about bridges."""
