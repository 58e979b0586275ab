"""Both databases: connections, schema, limits, partitions, soundness, outages."""
