"""What Clew knows about the frameworks."""
