"""A provider of the NSI Connection Service for tests: `provider` is its machine, `words` its XML, `server` its HTTPS.

It follows conversations that were recorded with two real providers, in words of our own.
"""
