"""The terms of the domain, a module for each noun. Values are frozen; instants are aware, in UTC."""
