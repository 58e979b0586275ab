"""The HTTP api of a hub, its metrics, and the page."""
