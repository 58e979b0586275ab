"""Commands that speak LDM, or read its files."""
