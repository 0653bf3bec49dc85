"""The parts of `scripts/hardware_report.py`: what is measured, how it is timed, and how it is told.

`timing`, `crossover` and `particles` are pure functions; each `*_section` module measures one chapter of the report and
returns a `records.Section`; `chapters` puts them in order. Nothing here is imported by the library.
"""
