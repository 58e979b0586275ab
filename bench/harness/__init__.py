"""Parts that all measurements share: rows and their files, turns, counters, schedules and stamps."""
