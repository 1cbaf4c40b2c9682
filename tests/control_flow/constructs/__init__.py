"""The programs, one file for each family of constructs; each goes another way on some of its inputs."""
