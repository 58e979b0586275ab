"""Events and batches of receipts over Kafka, for a hub of several processes. Only wiring knows it."""
