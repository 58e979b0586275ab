"""Metrics for Prometheus: the catalogue of all metrics, their text, and those that every process has."""

from downburst.exposition.catalogue import CATALOGUE, Kind, Metric
from downburst.exposition.process import process_text
from downburst.exposition.text import CONTENT_TYPE, Sample, text_of

__all__ = ["CATALOGUE", "CONTENT_TYPE", "Kind", "Metric", "Sample", "process_text", "text_of"]
