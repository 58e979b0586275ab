"""Parts of a hub in processes of their own: names, signs of life, and requests between them over the bus."""
