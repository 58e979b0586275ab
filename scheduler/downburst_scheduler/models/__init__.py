"""Models of what transports would do: rates of connections, queues, repair, circuits, groups; pure functions."""
