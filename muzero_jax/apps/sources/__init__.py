"""What a new run can begin with: stored games (`--offline`) or trained weights (`--init-from`)."""
