"""LDMs as peers: their messages on the wire, their servers and tools, and hubs among them."""
