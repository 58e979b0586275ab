"""Whether logs keep products as long as outages of sites last."""
