"""What people do with the core; nothing in the core imports it, except `run`, whose loop plays matches."""
