"""The read model: what a person looks at and no decision needs."""
