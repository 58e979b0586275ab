"""Other conditions of a feed, tried on the inputs of the live planner by the planner's own functions."""
