"""Users, access tokens, the audit."""
