"""Forecasts of the rates of paths from measured rates."""
