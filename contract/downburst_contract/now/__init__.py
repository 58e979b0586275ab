"""The page *Now*: its incidents, and the history of a day."""
