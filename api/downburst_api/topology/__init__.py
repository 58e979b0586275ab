"""The topology, and questions to the reservation desk."""
