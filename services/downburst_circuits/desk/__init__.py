"""The reservation desk: paths through the topology, and the windows in which they have room."""
