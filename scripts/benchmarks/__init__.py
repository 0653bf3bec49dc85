"""What is measured, and how: programs and their yardsticks, times in turn, tables, plots, and the machine."""
