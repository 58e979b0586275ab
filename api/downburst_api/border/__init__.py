"""The border to untrusted callers: limits on the hub's resources per connection, address and tenant.

`connections` counts connections and closes incomplete ones, `proxies` finds a request's sender, `bodies` reads no
more than a route needs, `tenants` counts resources held for long, `hashing` queues work that costs a processor.
"""
