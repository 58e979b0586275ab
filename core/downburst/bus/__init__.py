"""The bus: events between the parts of a hub."""
