"""Models of transports: rates of connections, queues, repair, circuits, groups; pure functions."""
