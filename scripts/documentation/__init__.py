"""Parts of the site that are made from the code, so that they stay up to date."""
