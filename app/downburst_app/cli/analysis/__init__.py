"""Parts of `downburst analyze`: the hub's own last days, and views of the results."""
