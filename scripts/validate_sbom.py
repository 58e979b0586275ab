"""Validates a CycloneDX document against its schema: `.cache/sbom/bin/python scripts/validate_sbom.py FILE`."""

import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

file = Path(sys.argv[1])
if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(file.read_text()):
    sys.exit(f"{file} is no CycloneDX document: {error}")
print(f"{file} is a valid CycloneDX document")
