"""Real other ends of WIS2: brokers, servers of products, and programs that judge notifications."""
