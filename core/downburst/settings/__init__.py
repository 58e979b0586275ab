"""Every setting of a hub, with unit, default and reason; a module for each section."""
