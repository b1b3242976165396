"""What a producer and a consumer of a Holdfast box share: docs/format/handoff.md, the smallest safe way."""
import json, os, secrets, sys, time, zlib

DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id():
    ms = int(time.time() * 1000)
    digits = [DIGITS[ms >> (5 * place) & 31] for place in range(9, -1, -1)]
    return "".join(digits + [secrets.choice(DIGITS) for _ in range(26)])


def record(kind, body):
    envelope = {"kind": kind, "format": 1, "by": "box.py", "body": body}
    head = json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))[:-1].encode()
    return head + b',"crc":"%08x"}\n' % zlib.crc32(head)


def body_of(kind, data, newest=1):
    """ValueError for what is torn, edited, foreign or newer."""
    head, _, tail = data.rpartition(b',"crc":"')
    if tail != b'%08x"}\n' % zlib.crc32(head):
        raise ValueError("its checksum does not match its content")
    envelope = json.loads(data)
    if not 1 <= envelope["format"] <= newest or envelope["kind"] != kind:
        raise ValueError("it is not a %s record of format %s" % (kind, "1" if newest == 1 else "1 or %d" % newest))
    return envelope["body"]


def arguments(usage, least):
    """Those of the command line, for a box that is there; else the program ends with a message."""
    if len(sys.argv) <= least:
        print("usage:", usage, file=sys.stderr)
        sys.exit(2)
    must_be_box(sys.argv[1])
    return sys.argv[1:]


def must_be_box(box):
    """A share that is not mounted is an empty folder: what is written there is found by no worker."""
    try:
        # Format 2 differs in keys/ only, which neither of the two programs touches.
        body_of("box", read(os.path.join(box, "box.json")), newest=2)
    except OSError:
        sys.exit("there is no box in %s: is the share mounted?" % box)
    except ValueError as error:
        sys.exit("%s/box.json: %s" % (box, error))


def sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def write(path, data):
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def read(path):
    with open(path, "rb") as file:
        return file.read()


def make(directory):
    """A directory that stays, durable."""
    if not os.path.isdir(directory):
        make(os.path.dirname(directory))
        try:
            os.mkdir(directory)
        except FileExistsError:
            pass
        sync(os.path.dirname(directory))
    return directory


def now_ms(box):
    """By the clock of the file server: the stamp of a file that is made now."""
    path = os.path.join(make(os.path.join(box, "foreign")), new_id() + ".clock")
    write(path, b"")
    stamp = os.stat(path).st_mtime_ns // 1_000_000
    os.unlink(path)
    return stamp


def move(source, parent, directory, name):
    """Into a directory of a minute or a day, which may be removed at any moment. False: `source` is gone."""
    for _ in range(10):
        os.makedirs(os.path.join(parent, directory), exist_ok=True)
        try:
            os.rename(source, os.path.join(parent, directory, name))
            return True
        except FileNotFoundError:
            if not os.path.exists(source):
                return os.path.exists(os.path.join(parent, directory, name))
    raise OSError("%s cannot be moved to %s" % (source, parent))


def put_once(box, path, data):
    """Publishes a record under a name that is won once. False: another one has it."""
    temp = os.path.join(make(os.path.join(box, "foreign")), new_id() + ".json")
    write(temp, data)
    make(os.path.dirname(path))
    try:
        os.link(temp, path)
    except FileExistsError:
        if os.path.isdir(path) or read(path) != data:  # Equal: the answer to our own first request was lost.
            return False
    finally:
        os.unlink(temp)
    sync(os.path.dirname(path))
    return True
