"""`python -m grass.tasks.runner`, started by the keeper with a line to it."""

from grass.tasks.runner.serving import main

if __name__ == "__main__":
    main()
