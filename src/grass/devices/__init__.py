"""What a machine has: units found without configuration."""
