"""What attempts use of the machine: processes and devices are looked at."""
