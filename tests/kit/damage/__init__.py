"""Every stored file damaged in every way: files of a real hub and a real site, and the result of their next start."""
