"""Kafka as a peer: its broker, and librdkafka as its client."""
