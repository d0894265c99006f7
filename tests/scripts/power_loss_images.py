"""What may be on a disk after a loss of power, made of a record of what was done to files.

The record is that of power_loss_shim.c. Each entry has a kind, a path (and the one that a file gets), a place and a
number of bytes, and a time:

    c  a file is made                      w  bytes are written at a place
    d  a folder is made                    t  a file gets a length
    r  a file or folder gets another name  b  a sync begins
    u  a file or folder is removed         s  that sync has succeeded

The model: what was written before a sync began is there once it has succeeded. Of what was written since, any part
may be there, whatever came before or after it, within the length that the last sync made durable. A length is durable
with a sync of its file, and a name with one of its file or of its folder; of names that are not, any part may be there.
"""

import dataclasses
import heapq
import mmap
import random
import struct

HEAD = struct.Struct("<cHHQQQ")
# The pieces of a write that may be there one without the other, in bytes.
BLOCK = 4096


@dataclasses.dataclass(slots=True, eq=False)
class Entry:
    """An entry of the record. `data` is what was written: the mapped file and the place in it."""

    kind: str
    path: str
    other: str
    at: int
    count: int
    time: int
    data: tuple


def entries_of(file):
    """The whole entries of one process."""
    if not file.stat().st_size:
        return
    with file.open("rb") as opened:
        mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    place = 0
    while place + HEAD.size <= len(mapped):
        kind, path, other, at, count, time = HEAD.unpack_from(mapped, place)
        place += HEAD.size
        data = place + path + other
        end = data + (count if kind == b"w" else 0)
        if end > len(mapped):
            return
        names = mapped[place:data].decode()
        yield Entry(kind.decode(), names[:path], names[path:], at, count, time, (mapped, data))
        place = end


def read_record(record):
    """The entries of all processes, in their order."""
    files = sorted(record.parent.glob(record.name + ".*"))
    return list(heapq.merge(*map(entries_of, files), key=lambda entry: entry.time))


class Node:
    """A file or a folder: its durable bytes, and what was done to it since (`Entry`s of kinds w and t)."""

    def __init__(self, is_folder=False):
        self.is_folder, self.durable, self.pending = is_folder, bytearray(), []

    def unsynced(self):
        return sum(entry.count for entry in self.pending)


def apply(content, entry, blocks=None, is_bounded=True):
    """Does to a file's content what an entry says, of a write only the blocks that are named. Where it is bounded, its
    length stays."""
    if entry.kind == "t":
        if not is_bounded:
            del content[entry.at:]
            content.extend(bytes(entry.at - len(content)))
        return
    mapped, data = entry.data
    end = entry.at + entry.count
    if is_bounded:
        end = min(end, len(content))
    elif end > len(content):
        content.extend(bytes(end - len(content)))
    if blocks is None:
        pieces = [(entry.at, end)]
    else:
        pieces = [(max(entry.at, block * BLOCK), min(end, (block + 1) * BLOCK)) for block in blocks]
    for first, last in pieces:
        if first < last:
            content[first:last] = mapped[data + first - entry.at : data + last - entry.at]


def folder_of(path):
    return path.rpartition("/")[0]


def renamed(names, old, new):
    """What is at a name, and below it where that is a folder, gets another."""
    moved = {path: names.pop(path) for path in list(names) if path == old or path.startswith(old + "/")}
    for path in [path for path in names if moved and (path == new or path.startswith(new + "/"))]:
        del names[path]
    for path, node in moved.items():
        names[new + path[len(old):]] = node


class Disk:
    """What is durable, and what is not yet, after the entries so far."""

    def __init__(self):
        # What is there from the start: the root, and a folder for what is written beside the data folder.
        self.names = {"": Node(is_folder=True), "out": Node(is_folder=True)}
        self.durable = dict(self.names)
        # Changes of names that are not durable: an entry and the node it is about.
        self.pending = []
        self.syncs = {}

    def step(self, entry):
        """Takes in the next entry."""
        node = self.names.get(entry.path)
        if entry.kind in "cd":
            node = self.names[entry.path] = Node(is_folder=entry.kind == "d")
            self.pending.append((entry, node))
        elif entry.kind == "r":
            renamed(self.names, entry.path, entry.other)
            self.pending.append((entry, node))
        elif entry.kind == "u":
            self.names.pop(entry.path, None)
            self.pending.append((entry, node))
        elif entry.kind in "wt" and node:
            node.pending.append(entry)
        elif entry.kind == "b" and node:
            # Its own name and those of the folders around it, and those within it.
            path, about_it = entry.path, {id(node)}
            while path:
                path = folder_of(path)
                about_it.add(id(self.names.get(path)))
            concerned = {
                id(change) for change, about in self.pending
                if id(about) in about_it
                or node.is_folder and entry.path in (folder_of(change.path), folder_of(change.other))
            }
            self.syncs[entry.at] = (node, set(map(id, node.pending)), concerned)
        elif entry.kind == "s" and entry.at in self.syncs:
            self.synced(*self.syncs.pop(entry.at))

    def synced(self, node, written, concerned):
        for entry in node.pending:
            if id(entry) in written:
                apply(node.durable, entry, is_bounded=False)
        node.pending = [entry for entry in node.pending if id(entry) not in written]
        left = []
        for change, about in self.pending:
            if id(change) in concerned:
                self.rename(self.durable, change, about)
                # What is older says nothing of this name any more.
                path = change.other if change.kind == "r" else change.path
                left = [(old, of) for old, of in left if path not in (old.path, old.other)]
            else:
                left.append((change, about))
        self.pending = left

    @staticmethod
    def rename(names, change, node):
        if change.kind == "r":
            renamed(names, change.path, change.other)
        elif change.kind == "u":
            names.pop(change.path, None)
        elif folder_of(change.path) in names:
            names[change.path] = node

    def write(self, folder, choice):
        """Makes the image that a choice says."""
        names = dict(self.durable)
        for change, node in self.pending:
            if choice.has_name(change):
                self.rename(names, change, node)
        for path, node in sorted(names.items()):
            if path and path.split("/")[0] in ("data", "out"):
                if node.is_folder:
                    (folder / path).mkdir(parents=True, exist_ok=True)
                    continue
                content = bytearray(node.durable)
                choice.begin(node)
                for entry in node.pending:
                    blocks = choice.blocks(entry)
                    if blocks is None or blocks:
                        apply(content, entry, blocks, choice.is_bounded)
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(content)


class Within:
    """All that was written within the durable lengths, and no name that is not durable: what is overwritten is there,
    and what it takes the place of, beyond the end of the file, is not."""

    is_bounded, name = True, "all within the durable length"

    def begin(self, node):
        pass

    def has_name(self, change):
        return False

    def blocks(self, entry):
        return None


class Nothing(Within):
    """What is durable, and nothing else."""

    name = "what is durable"

    def blocks(self, entry):
        return []


class Chosen:
    """A random part, chosen in one of several ways."""

    WAYS = ("writes", "blocks", "all but one", "only one", "the newer ones", "the older ones")

    def __init__(self, seed, way=None):
        self.random = random.Random(seed)
        self.way = way or self.random.choice(self.WAYS)
        self.share = self.random.choice((0.1, 0.5, 0.9))
        self.is_bounded = self.random.random() < 0.7
        self.name = self.way if self.is_bounded else self.way + ", with lengths"

    def has_name(self, change):
        return self.random.random() < 0.5

    def begin(self, node):
        writes = [entry for entry in node.pending if entry.kind == "w"]
        self.one = self.random.choice(writes) if writes else None
        self.middle = writes[self.random.randrange(len(writes))].time if writes else 0

    def blocks(self, entry):
        if entry.kind == "t":
            return None if self.random.random() < 0.5 else []
        if self.way == "blocks":
            written = range(entry.at // BLOCK, (entry.at + entry.count - 1) // BLOCK + 1)
            return [block for block in written if self.random.random() < self.share]
        has = {
            "writes": lambda: self.random.random() < self.share,
            "all but one": lambda: entry is not self.one,
            "only one": lambda: entry is self.one,
            "the newer ones": lambda: entry.time >= self.middle,
            "the older ones": lambda: entry.time < self.middle,
        }[self.way]()
        return None if has else []


def unsynced_moments(entries, first):
    """The entries that end a sync of the log, each with a measure of how much it makes durable: first the moments at
    which an old segment has been begun anew behind one beyond the durable end, then those with the most bytes."""
    segment = 512 << 10
    disk, found = Disk(), []
    for number, entry in enumerate(entries):
        if entry.kind == "s" and entry.path == "data/db/db" and number >= first:
            node, is_exposed, is_extended = disk.names.get(entry.path), False, False
            for write in node.pending if node else ():
                if write.at + write.count > len(node.durable):
                    is_extended = True
                elif write.at % segment == 0 and is_extended:
                    is_exposed = True
            found.append(((is_exposed, node.unsynced() if node else 0), number))
        disk.step(entry)
    return sorted(found, reverse=True)


def stray_path(entries, folder):
    """A file that is not as the record says, which then does not tell all that was done."""
    disk = Disk()
    for entry in entries:
        disk.step(entry)
    for path, node in disk.names.items():
        if not node.is_folder and path.startswith(("data/", "out/")):
            content = bytearray(node.durable)
            for entry in node.pending:
                apply(content, entry, is_bounded=False)
            if not (folder / path).exists() or (folder / path).read_bytes() != content:
                return path
    return None
