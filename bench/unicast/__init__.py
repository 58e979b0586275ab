"""Unicast beside sendfile, NATS and Kafka."""
