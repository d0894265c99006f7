"""The two peers that are libraries of Python: a process that polls when it is told to, on standard input, and
says what it has. `peers_python.py feedparser|reader ADDRESSES DATABASE`."""

import json
import pathlib
import sys


class Feedparser:
    """A loop with conditional requests, which keeps what it read last and stores nothing."""

    def __init__(self, addresses, _):
        self.known = dict.fromkeys(addresses)

    def poll(self):
        import feedparser

        for address, known in self.known.items():
            found = feedparser.parse(
                address, etag=known and known.get("etag"), modified=known and known.get("modified")
            )
            if found.get("status") != 304:
                self.known[address] = found

    def items(self, address):
        return {entry.id: entry.content[0].value for entry in self.known[address].entries}


class Reader:
    """lemon24/reader with its database in a file."""

    def __init__(self, addresses, database):
        import reader

        self.reader = reader.make_reader(database)
        for address in addresses:
            self.reader.add_feed(address)

    def poll(self):
        self.reader.update_feeds(scheduled=False)

    def items(self, address):
        return {entry.id: entry.content[0].value for entry in self.reader.get_entries(feed=address)}


def main():
    kind, addresses, database = sys.argv[1:]
    addresses = pathlib.Path(addresses).read_text().split()
    peer = {"feedparser": Feedparser, "reader": Reader}[kind](addresses, database)
    print("ready", flush=True)
    for line in sys.stdin:
        word, _, address = line.strip().partition(" ")
        answer = peer.poll() if word == "poll" else peer.items(address)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
