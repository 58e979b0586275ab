"""Made-up and recorded products, played to a hub."""
