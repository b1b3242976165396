"""A Python process of a mixed crowd: member.py ORDERS, a line of JSON. It prints a line for everything it was told."""

import json
import random
import sys
import time

from holdfast import Handoff, Semaphore


def say(what):
    sys.stdout.write(what + "\n")
    sys.stdout.flush()


def note(journal, line):
    """One write: lines of several processes do not mix."""
    with open(journal, "ab", buffering=0) as file:
        file.write((line + "\n").encode())


def hold(name, lock, journal, rounds, **_):
    semaphore = Semaphore(lock, retry=0.005, fsync=False)
    for _ in range(rounds):
        with semaphore.acquire():
            note(journal, "begin " + name)
            time.sleep(random.random() / 500)
            note(journal, "end " + name)


def produce(name, box, keys, **_):
    with Handoff(box, name=name) as handoff:
        for key in keys:
            handoff.publish({"key.txt": key, "more.txt": "x" * (100_000 if random.random() < 0.2 else 10)}, key=key)
            say(key)


def consume(name, box, journal, **_):
    def work(delivery):
        note(journal, "%s %s" % (delivery.key, name))
        time.sleep(random.random() / 100)
        if random.random() < 0.1:
            delivery.retry("later", delay=0)
        return name

    Handoff(box).work(work, hold=1.0, attempts=1000)


ORDERS = json.loads(sys.argv[1])
{"hold": hold, "produce": produce, "consume": consume}[ORDERS["task"]](**ORDERS)
