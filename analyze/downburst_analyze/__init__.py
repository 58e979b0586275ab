"""What recordings would have cost and how late products would have been: `downburst analyze`."""
