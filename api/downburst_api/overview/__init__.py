"""The overview: what is wrong, what flows, how and why, who has it, how late."""
