"""The entry points of scripts/, and the files that other programs start them from."""
