"""What brokers and workers say to each other, and the channel they say it on."""
