"""What makes the first call in a store cheap: that it writes to few pages of the memory that all stores share.

A page that is written to is copied for its store. Of an interpreter at rest two things would write all over its
memory: reference counts, and the allocator, which takes what is free between lasting objects. So the objects that
are there when the component is built last for ever, and what is free between them is taken.
"""

import array
import gc
import types

# Begins the list of objects, which is looked for when the component has been built: the counts of those in it are
# then set to the value that the interpreter never changes. The next number says how many there are.
MARK = b"belljar: lasting"

# More pieces of free memory than there are.
PIECES = 200_000

# Pieces of one size that follow each other: they come from memory that is free as a whole.
ROW = 3

# Sizes of pieces, each at least half of the one before, for the head of a `bytes`, 17 bytes and what the allocator
# adds, counts too.
SIZES = [32_000, 16_000, 8_000, 4_000, *range(2_016, 240, -64), *range(240, 10, -16)]


def objects(but):
    """The addresses of all objects but these, each with the address of its type."""
    found = array.array("I", MARK)
    begin = len(found) + 1
    found.append(0)
    seen, pending = set(), gc.get_objects()
    seen.update(map(id, (*but, seen, pending)))
    while pending:
        one = pending.pop()
        if id(one) in seen or isinstance(one, types.FrameType):
            continue
        seen.add(id(one))
        found.append(id(one))
        found.append(id(type(one)))
        if isinstance(one, types.CodeType):
            # The collector does not look into code.
            pending += (one.co_consts, one.co_names, one.co_filename, one.co_name, one.co_qualname)
            pending += (one.co_linetable, one.co_exceptiontable)
        else:
            pending += gc.get_referents(one)
    found[begin - 1] = (len(found) - begin) // 2
    return found


def fill():
    """Takes free memory in pieces until only large ones are left, from which all that follows comes."""
    held, count = [None] * PIECES, 0
    for make, sizes in ((bytes, SIZES), (lambda _: object(), (0,))):
        for size in sizes:
            last = row = step = 0
            while row < ROW and count < PIECES:
                piece = make(size)
                before, step = step, id(piece) - last
                row = row + 1 if before == step and 0 < step <= size + 64 else 0
                held[count], last = piece, id(piece)
                count += 1
            for at in range(count - row, count):
                held[at] = None
            count, piece = count - row, None
    return held


def settle(but):
    """The list of what lasts, and what is free until then: both are to be held."""
    # What is garbage now would be garbage in every store.
    gc.collect()
    found = objects(but)
    # Collections look at none of these from now on.
    gc.freeze()
    return found, fill()
