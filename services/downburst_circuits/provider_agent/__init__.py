"""The hub as a provider of circuits for other networks: the other side of the NSI Connection Service 2 (GFD.237).

`machine` has the states of a connection, free of clocks, sockets and files; `agent` takes requests and carries them
out over the hub's own calendar; `delivery` tells requesters. Every record is stored before a request is acknowledged,
and what an end of the process interrupts is repeated by the next one.
"""
