"""Events and batches of receipts over Kafka, for a hub of several processes. Used by the wiring only."""
