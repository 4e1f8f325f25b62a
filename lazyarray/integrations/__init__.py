"""Other libraries, one file each. Each is imported only where it is used."""
