"""Every stored file damaged in every way: a hub and a site that really ran, and what their next start makes of it."""
