"""Side-by-side measurements, one command each; results are a table and JSON."""
