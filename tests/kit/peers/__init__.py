"""Real provider agents of the Connection Service, with a network of namespaces behind them, and our requester."""
