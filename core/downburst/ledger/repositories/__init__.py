"""The ledger's statements, a repository for each noun."""
