"""Commands of feeds and their products."""
