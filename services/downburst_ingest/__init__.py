"""Where products come from: watched directories, traces played over HTTP, generated feeds."""
