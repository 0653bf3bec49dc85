"""What `scripts/hardware_report.py` measures."""
