"""The application: the command line, and processes wired of all parts."""
