"""The whole configuration as one file: exported, compared, applied."""
