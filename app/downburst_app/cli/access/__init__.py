"""Commands of users, tokens and the audit log."""
