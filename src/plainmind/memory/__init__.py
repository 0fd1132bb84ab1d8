"""The memory as a whole: settings in, a working `Memory` out."""
