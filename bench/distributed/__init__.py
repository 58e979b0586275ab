"""A hub of several machines beside librdkafka."""
