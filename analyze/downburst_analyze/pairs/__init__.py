"""Heavy pairs of feed and site, learnt from recorded minutes: candidates for a permanent circuit."""
