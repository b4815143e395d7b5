"""Workers of pools: the files that pilots begin with, and their program."""
