"""LDMs as peers of ours: what they say on the wire, servers and tools of them, and hubs among them."""
