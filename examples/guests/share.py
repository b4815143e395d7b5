"""Hold half of a GPU while a block runs, and give it back: `grass.allocate`."""

import grass

with grass.allocate(gpu=0.5, name="half a gpu") as held:
    print("holding", held.units)
print("given back")
