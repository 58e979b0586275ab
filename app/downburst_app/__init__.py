"""The application: the command line, and processes wired from all parts."""
