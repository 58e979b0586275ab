"""Test kit: network namespaces, a user-space wire, and the checks that say when a result may not be judged."""
