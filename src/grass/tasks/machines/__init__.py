"""Machines by address: task hosts, as the program that uses them sees them."""
