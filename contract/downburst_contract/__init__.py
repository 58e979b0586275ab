"""The contract of the HTTP API: what requests and answers hold, for the hub, its clients and its description.

Each module has the shapes of one noun. Names, defaults and the order of members are promises to clients. The package
knows the words of the domain and nothing of how a hub works.
"""
