"""Starts the command line with the packages beside this file and no others."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from downburst_app.cli import main

main()
