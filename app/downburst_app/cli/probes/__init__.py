"""Commands about probes of paths."""
