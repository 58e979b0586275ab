"""LDM: sources, who may push, who is connected."""
