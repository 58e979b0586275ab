"""The acting part of circuits on demand: it orders, extends and gives back circuits, and gives plans their riders."""
