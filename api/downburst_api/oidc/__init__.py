"""Sign-in at a provider of OpenID Connect: authorization code with PKCE (decision 83)."""
