"""What a program can reach and change besides its arguments: found, snapshotted, compared, written, restored."""
