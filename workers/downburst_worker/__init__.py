"""The Python agent beside a node: starts it, sends it the wanted state, and stores its reports."""
