"""What `scripts/hardware_report.py` measures: each module is a chapter or two, `chapters` puts them in order."""
