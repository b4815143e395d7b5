"""What `grass show` prints."""
