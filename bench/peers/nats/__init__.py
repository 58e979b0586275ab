"""NATS as a peer: its own server, and a client in Go."""
