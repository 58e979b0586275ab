"""Parts of a hub in processes of their own: their names, signs of life, and questions between them over the bus."""
