"""How numbers are multiplied: convolutions, precision, devices."""
