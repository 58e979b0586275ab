"""Sources of products: watched directories."""
