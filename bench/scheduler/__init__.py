"""The scheduler: the cost of planning, and predictions beside measurements."""
