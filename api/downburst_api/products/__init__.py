"""The upload of products, and the contents of feeds' logs."""
