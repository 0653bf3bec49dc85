"""Games that pgx lacks."""
