#!/usr/bin/env python3
"""Publishes files as one ticket: producer.py BOX FILE...   (KEY=… in the environment: its idempotency key)"""
import base64, hashlib, os, socket, sys
from datetime import datetime, timezone
from box import arguments, make, move, new_id, now_ms, read, record, sync, write

INLINE_MAX = 64 * 1024


def publish(box, files, key=None):
    """`files`: bytes by name. The ticket is durable when this returns; its id."""
    identity = new_id()
    staged = os.path.join(make(os.path.join(box, "foreign")), identity + ".json")
    is_inline = sum(map(len, files.values())) <= INLINE_MAX
    if not is_inline:
        payload = make(os.path.join(box, "data", identity[-2:], identity))
        for name, data in files.items():
            write(os.path.join(payload, name), data)
        sync(payload)
    now = now_ms(box)
    ticket = {
        "id": identity,
        "key": key or identity,
        "isKeyed": False,
        "files": [
            {"name": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()
        ],
        "createdAt": datetime.fromtimestamp(now / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
        "producer": {"host": socket.gethostname(), "pid": os.getpid(), "name": "producer.py"},
        "priority": 5,
    }
    if is_inline:
        ticket["inline"] = {name: base64.b64encode(data).decode() for name, data in files.items()}
    write(staged, record("ticket", ticket))
    incoming, minute = make(os.path.join(box, "incoming", "5")), "%010d" % (now // 60_000)
    if not move(staged, incoming, minute, identity + "-0.json"):
        raise OSError("%s was removed by another program" % staged)
    sync(os.path.join(incoming, minute))
    sync(incoming)
    return identity


if __name__ == "__main__":
    box, *paths = arguments("producer.py BOX FILE...", 2)
    try:
        print(publish(box, {os.path.basename(path): read(path) for path in paths}, os.environ.get("KEY")))
    except OSError as error:
        sys.exit(str(error))
