"""Golden screens: what commands show on a real terminal."""
