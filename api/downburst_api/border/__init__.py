"""Where requests come in from strangers: what a connection, an address and a tenant may take of the hub at a time.

`connections` counts connections and gives unfinished ones up, `proxies` says from whom a request came, `bodies` lets
no more in than a route needs, `tenants` counts what is held for long, `hashing` queues what costs a processor.
"""
