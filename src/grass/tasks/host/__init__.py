"""The program of a task host: it runs functions for a program elsewhere."""
