"""Messages between brokers and workers, and the channel that carries them."""
