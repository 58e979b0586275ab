"""Sites that ask for access, and operators who answer."""
