"""Alarms: what is wrong, told once to whoever asked for it, and once more when it is over."""
