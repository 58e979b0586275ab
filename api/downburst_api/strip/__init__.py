"""The last day by the quarter hour, for the page *Now*: the worst feed of each site, and the hub's traffic."""
