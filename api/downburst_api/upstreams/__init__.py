"""The hubs that this hub is a site of."""
