"""The makers of circuits, behind one port: the hub's own nodes, third parties before, providers asked by NSI."""
