"""The upload of products, and what a feed's log holds."""
