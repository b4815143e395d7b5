"""What jobs use: measured, remembered as profiles, and enforced."""
