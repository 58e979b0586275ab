"""The restore drill: restores a backup into a directory of its own, compares it, tries it, and deletes it."""
