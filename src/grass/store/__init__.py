"""Where state is kept: one interface, and SQLite or PostgreSQL behind it."""
