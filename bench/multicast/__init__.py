"""Multicast beside UFTP, UDPcast, NORM, TCP fan-outs, NATS and a bare blaster."""
