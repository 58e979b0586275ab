"""perfSONAR test points: tasks for their pScheduler, and the state of its runs."""
