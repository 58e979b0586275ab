"""Programs that the product is compared with, and their installation."""
