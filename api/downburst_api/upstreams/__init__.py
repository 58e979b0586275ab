"""Upstreams: the hubs that this hub receives from as a site."""
