"""Reading of everything that people read: sentences of the product, and its documents."""
