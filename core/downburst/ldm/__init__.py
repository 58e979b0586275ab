"""LDM's own files, read as LDM reads them, and their meaning for a hub. Nothing here changes anything."""
