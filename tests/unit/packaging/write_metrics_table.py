"""Writes the table of metrics into docs/metrics.md."""

from pathlib import Path

from unit.packaging.metrics_table import markdown

FILE = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"

if __name__ == "__main__":
    before = FILE.read_text().partition("## Every process")[0]
    FILE.write_text(before + markdown())
