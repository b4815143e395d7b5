"""The link: messages, frames, and dialling a broker over real TLS."""
