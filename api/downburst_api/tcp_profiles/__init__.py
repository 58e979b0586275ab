"""TCP profiles: the tuning of the connections to prefixes of addresses."""
