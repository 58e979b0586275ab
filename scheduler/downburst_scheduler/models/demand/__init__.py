"""Circuits on demand: the terms of orders, the habit of a feed's trains, and the reservations that follow."""
