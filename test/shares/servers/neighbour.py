# A program on another client that opens files of the share as programs of Windows do: without sharing them for changes of
# their names, or at all. Arguments: configuration of Samba, address, user, password, file for the figures, and how
# the folders of the share begin that it looks into.
# Runs until it is ended; the figures are replaced after each file.
import json
import os
import random
import sys
import time

from samba import NTSTATUSError, credentials
from samba.samba3 import libsmb_samba_internal as libsmb
from samba.samba3 import param

READ = 0x1
SHARE_READ, SHARE_WRITE, SHARE_DELETE = 0x1, 0x2, 0x4
# The last one lets others remove the file: its name then stays until it is closed.
SHARES = [0, SHARE_READ, SHARE_READ | SHARE_WRITE, SHARE_READ | SHARE_WRITE | SHARE_DELETE]
OPEN_EXISTING = 1
DIRECTORY = 0x10
LOOKS = 12


def main():
    configuration, address, user, password, figures_path, prefix = sys.argv[1:]
    settings = param.get_context()
    settings.load(configuration)
    who = credentials.Credentials()
    who.guess(settings)
    who.set_username(user)
    who.set_password(password)
    share = libsmb.Conn(address, "share", lp=settings, creds=who)
    figures = {"opened": 0, "refused": 0, "gone": 0}
    while True:
        path = some_file(share, prefix)
        if path is None:
            time.sleep(0.05)
            continue
        try:
            handle = share.create(
                path, DesiredAccess=READ, ShareAccess=random.choice(SHARES), CreateDisposition=OPEN_EXISTING
            )
        except NTSTATUSError as error:
            # 0xC0000043: another program has it open and does not share it.
            figures["refused" if error.args[0] & 0xFFFFFFFF == 0xC0000043 else "gone"] += 1
        else:
            figures["opened"] += 1
            # Most programs close a file soon; a virus scanner may take longer.
            time.sleep(random.choice([0.01, 0.05, 0.1, 0.3]))
            share.close(handle)
        with open(figures_path + ".new", "w", encoding="utf-8") as file:
            json.dump(figures, file)
        os.replace(figures_path + ".new", figures_path)


def some_file(share, prefix):
    """A random way down the tree, or None if it leads nowhere."""
    path = ""
    for depth in range(LOOKS):
        try:
            entries = [entry for entry in share.list(path) if entry["name"] not in (".", "..")]
        except NTSTATUSError:
            return None
        if depth == 0:
            entries = [entry for entry in entries if entry["name"].startswith(prefix)]
        if not entries:
            return None
        entry = random.choice(entries)
        path = entry["name"] if path == "" else f"{path}\\{entry['name']}"
        if not entry["attrib"] & DIRECTORY:
            return path
    return None


main()
