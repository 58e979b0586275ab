"""LDM's own files, read as LDM reads them, and what they mean for a hub. Nothing here changes anything."""
