"""How everything is measured and told: times in turn, samples and ratios, the machine, tables and plots."""
