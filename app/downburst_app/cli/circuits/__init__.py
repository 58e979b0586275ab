"""Commands of circuits and ports."""
