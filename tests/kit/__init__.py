"""Test kit: network namespaces, a user-space wire, and checks that reject results of an overloaded machine."""
