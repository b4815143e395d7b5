"""The whole system under one seed and one virtual clock; see `world`."""
