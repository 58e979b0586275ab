"""A client of a Downburst hub: typed calls, sent at once by `Hub` or awaited with `AsyncHub`.

    from downburst_client import Hub, calls

    with Hub("https://hub.example", token="dba_...") as hub:
        for site in hub.every(calls.list_sites()):
            print(site.site, site.state_words)

`calls` has a function for each route, and `downburst_contract` the shapes of requests and answers.
"""

from downburst_client.call import Call
from downburst_client.errors import BadAddress, BrokenOff, HubError, Problem, Unreachable
from downburst_client.hubs import AsyncHub, Hub

__all__ = ["AsyncHub", "BadAddress", "BrokenOff", "Call", "Hub", "HubError", "Problem", "Unreachable"]
