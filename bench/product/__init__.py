"""The product as a measurement runs it: a hub and sites in the namespaces of a lab."""
