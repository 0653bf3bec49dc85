"""How everything is measured and reported: times in turn, samples and ratios, the machine, tables and plots."""
