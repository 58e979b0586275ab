"""TCP on the paths to sites: profiles of its tuning, and the rates that a connection can reach."""
