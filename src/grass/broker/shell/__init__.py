"""The I/O around the broker's core: rounds carried out, the writer, links, output."""
