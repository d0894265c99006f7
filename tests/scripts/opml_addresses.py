"""The addresses of feeds in OPML lists, found without reading them as XML.

    opml_addresses.py FILE…

A line for each: the file's name, a tab, the address. Comments are cut out; then every attribute
xmlUrl, in whatever case and quotes, is one address, its references resolved as HTML does. It is
another way to count than the gateway's reader has, and knows nothing of outlines, folders or tags.
"""

import html
import pathlib
import re
import sys

ATTRIBUTE = re.compile(r"""\bxmlurl\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""", re.IGNORECASE)
ENCODING = re.compile(rb"""encoding=["']([A-Za-z0-9_-]+)["']""")


def decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        said = ENCODING.search(data[:200])
        return data.decode(said.group(1).decode() if said else "windows-1252", "replace")


def main() -> None:
    for name in sys.argv[1:]:
        path = pathlib.Path(name)
        text = re.sub(r"<!--.*?-->", "", decoded(path.read_bytes()), flags=re.DOTALL)
        for match in ATTRIBUTE.finditer(text):
            value = html.unescape(next(group for group in match.groups() if group is not None)).strip()
            if value:
                print(f"{path.name}\t{value}")


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")
    main()
