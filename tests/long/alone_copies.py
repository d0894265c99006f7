"""alone.py with its copies kept, so that many programs are measured on the same ones.

    alone_copies.py SCORERS COPIES [the arguments of alone.py]
"""

import os
import shutil
import sys

scorers, copies = sys.argv[1:3]
sys.path.insert(0, scorers)
sys.argv[1:3] = []

import alone  # noqa: E402
import inject  # noqa: E402

make = inject.inject


def kept(source, out, every, only):
    """Points `out` at the copy, which is made once; nothing where there is none of that number."""
    copy = os.path.join(copies, os.path.basename(source), f"{every}-{only}")
    if not os.path.isdir(copy):
        # One that was broken off is no copy.
        part = f"{copy}.part"
        shutil.rmtree(part, ignore_errors=True)
        if not make(source, part, every, only=only):
            os.makedirs(part)
        os.rename(part, copy)
    if os.path.islink(out):
        os.unlink(out)
    os.symlink(copy, out)
    return bool(os.listdir(copy))


inject.inject = kept
alone.main()
