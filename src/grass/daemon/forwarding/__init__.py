"""What a daemon without a broker of its own passes on to that of another machine."""
