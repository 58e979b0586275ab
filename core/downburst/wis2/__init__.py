"""The words of WIS 2.0: notifications, topics, digests; pure. Nothing here knows a broker."""
