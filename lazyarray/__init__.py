"""NumPy arrays that stay on the GPU until something needs them on the host."""
