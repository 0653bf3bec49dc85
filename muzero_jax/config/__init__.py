"""The settings of a run: their groups, ranges, help, and which of them go together; one field is one flag."""
