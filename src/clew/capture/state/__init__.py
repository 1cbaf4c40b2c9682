"""What a program can reach and change besides its arguments: found, remembered, compared, written, put back."""
