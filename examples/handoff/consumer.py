#!/usr/bin/env python3
"""Works tickets with a command: consumer.py BOX COMMAND   (COMMAND FILE...; exit 0: done, 65: failed, else: later)

HOLD_MS (600000): how long one ticket may take. UNTIL_EMPTY=1: end when there is nothing to do.
"""
import base64, hashlib, os, re, subprocess, tempfile, time
from datetime import datetime, timezone
from box import arguments, body_of, make, move, must_be_box, now_ms, put_once, read, record, sync, write

BOX, COMMAND = arguments("consumer.py BOX COMMAND", 2)[:2]
HOLD_MS = int(os.environ.get("HOLD_MS", 600_000))
ATTEMPTS = 5
NAME = re.compile(r"(?:([0-9]{16})-)?([0-9a-hjkmnp-tv-z]{36})-([0-9]+)(?:~([0-9]+))?(?:@([0-9]+))?\.json")


def tickets(*path):
    """Every ticket in a directory: its path, its name without a time, and the parts of its name."""
    directory = os.path.join(BOX, *path)
    for text in sorted(os.listdir(directory)) if os.path.isdir(directory) else []:
        if name := NAME.fullmatch(text):
            yield os.path.join(directory, text), text[17:] if name[1] else text, name


def below(*path):
    directory = os.path.join(BOX, *path)
    return [(*path, name) for name in sorted(os.listdir(directory))] if os.path.isdir(directory) else []


def give_back_due(now):
    """Delayed tickets whose time has come, and claims whose worker died or was too slow."""
    for path, plain, name in (each for place in [("parked",), *below("delayed")] for each in tickets(*place)):
        if name[1] is None or int(name[1]) > now:
            continue
        try:
            ticket = body_of("ticket", read(path))
        except (FileNotFoundError, ValueError):
            continue  # Moved on; or damaged, and then a worker of Holdfast sees to it.
        if "group" not in ticket:  # Groups have an order: a worker of Holdfast moves them to their place.
            incoming = make(os.path.join(BOX, "incoming", str(ticket["priority"])))
            move(path, incoming, "%010d" % (now // 60_000), plain)


def claim(now):
    parked = make(os.path.join(BOX, "parked"))
    for place in (minute for priority in range(10) for minute in below("incoming", str(priority))):
        for path, plain, name in tickets(*place):
            rest = plain[36 + 1 + len(name[3]) :]
            claimed = os.path.join(parked, "%016d-%s-%d%s" % (now + HOLD_MS, name[2], int(name[3]) + 1, rest))
            try:  # The one step that decides. A failure means: not ours, whatever is there now.
                os.rename(path, claimed)
                return claimed
            except OSError:
                continue
    return None


def work(path, now):
    _, identity, claims, forgiven, replays = NAME.fullmatch(os.path.basename(path)).groups()
    plain, attempt = os.path.basename(path)[17:], int(claims) - int(forgiven or 0)
    moment = datetime.fromtimestamp(now / 1000, timezone.utc)
    iso, day = moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z", moment.strftime("%Y%m%d")
    me = {"id": identity, "claims": int(claims), "holder": "consumer.py %d" % os.getpid(), "at": iso}

    def settle(state, outcome, reason, due=None):
        note = {"attempt": attempt, "at": iso, "outcome": outcome, "reason": reason, "holder": me["holder"]}
        notes = os.path.join(BOX, "notes", identity[-3:], "%s-%s.json" % (identity, claims))
        put_once(BOX, notes, record("note", note if due is None else dict(note, dueMs=due)))
        name, directory = (plain, day) if due is None else ("%016d-%s" % (due, plain), "%010d" % (due // 60_000))
        if move(path, make(os.path.join(BOX, state)), directory, name) and due is None:
            sync(os.path.join(BOX, state, directory))

    def finish(ledger):
        """The key is committed: by this ticket, or by another one with the same key."""
        try:
            found = body_of("ledger", read(ledger))
        except IsADirectoryError:
            return  # With outputs: left to a worker of Holdfast, when the claim is due.
        same = (ticket["key"], int(replays or 0))
        entries = found.get("entries", [found])  # Old ones are packed.
        committed = next(each for each in entries if (each["key"], each.get("replays", 0)) == same)
        if not committed["sent"]:
            name = plain if committed["id"] == identity else plain[:-5] + "-duplicate.json"
            move(path, make(os.path.join(BOX, "archive")), day, name)

    try:
        ticket = body_of("ticket", read(path))
    except FileNotFoundError:
        return  # Its time was over already.
    except ValueError as error:
        return settle("error", "fail", str(error))
    digest = hashlib.sha256((ticket["key"] + ("\n" + replays if replays else "")).encode()).hexdigest()
    ledger = os.path.join(BOX, "ledger", digest[:3], digest)
    if os.path.exists(ledger):
        return finish(ledger)
    if attempt > ATTEMPTS:
        return settle("error", "lost", "%d attempts ended without an answer." % (attempt - 1))
    if ticket.get("expiresAt", "9") <= iso:
        return settle("error", "expired", "It was not delivered before %s." % ticket["expiresAt"])
    with tempfile.TemporaryDirectory() as directory:
        files = []
        for file in ticket["files"]:
            name = os.path.basename(file["name"])  # A name with a path in it must not leave its directory.
            source = os.path.join(BOX, "data", identity[-2:], identity, name)
            if "inline" in ticket:
                data = base64.b64decode(ticket["inline"].get(name, ""))
            else:
                data = read(source) if os.path.exists(source) else b""
            if (len(data), hashlib.sha256(data).hexdigest()) != (file["size"], file["sha256"]):
                return settle("error", "mismatch", "The file %s is not what its manifest says." % name)
            files.append(os.path.join(directory, name))
            write(files[-1], data)
        done = subprocess.run([COMMAND, *files], capture_output=True)
    now = now_ms(BOX)
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace")[-4000:]
        if done.returncode == 65 or attempt >= ATTEMPTS:
            return settle("error", "fail", reason)
        return settle("delayed", "retry", reason, now + 1_000 * 2**attempt)
    kept = os.path.join(BOX, "parked", "%016d-%s" % (now + HOLD_MS, plain))
    try:  # Is it still ours? What was given back is not committed.
        os.rename(path, kept)
    except FileNotFoundError:
        return
    path = kept
    result = done.stdout.decode(errors="replace")
    entry = dict(me, key=ticket["key"], replays=int(replays or 0), result=result, outputs=[], sent=[])
    put_once(BOX, ledger, record("ledger", entry))
    finish(ledger)


while True:
    must_be_box(BOX)
    started = now_ms(BOX)
    give_back_due(started)
    claimed = None if os.path.exists(os.path.join(BOX, "pause.json")) else claim(started)
    if claimed is not None:
        work(claimed, started)
    elif os.environ.get("UNTIL_EMPTY"):
        break
    else:
        time.sleep(0.25)
