"""`grass top`: the jobs and GPUs on a whole terminal. Only that command imports it."""
