"""Users, access tokens, the audit log."""
