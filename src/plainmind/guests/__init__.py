"""What stands beside the kernel: each package here is loaded when it is asked for, and imports only the kernel."""
