"""What routes of every noun share: parameters, pages of lists, entity tags, tables, the description."""
