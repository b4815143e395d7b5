"""Python functions as tasks of one program: wait-groups, executors, child processes."""
