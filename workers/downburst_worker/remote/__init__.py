"""Questions of a hub to its senders, over the bus."""
