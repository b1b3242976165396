"""The guarantees of the hand-off: what was published is never lost, and each key is committed once."""

import hashlib
import io
import json
import os
import re
import signal
import sys
import tempfile
import threading
import time
import unittest
import warnings
import zlib
from pathlib import Path
from unittest import mock

import holdfast
from holdfast import ClaimLost, Corrupt, Fail, Handoff, InvalidName, NewerFormat, NotABox, OutcomeUnknown, PayloadMismatch

BIG = b"x" * 70_000


def record(kind, body, number=1):
    head = json.dumps({"kind": kind, "format": number, "by": "9.9.9", "body": body}, ensure_ascii=False, separators=(",", ":"))[:-1].encode()
    return head + b',"crc":"%08x"}\n' % zlib.crc32(head)


class HandoffCase(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.directory = os.path.join(os.path.realpath(scratch.name), "box")
        self.make_box(self.directory)
        self.box = Handoff(self.directory)

    def make_box(self, directory):
        os.mkdir(directory)
        Path(directory, "box.json").write_bytes(record("box", {"id": holdfast.new_id(), "lanes": 64}))

    def path(self, *parts):
        return Path(self.directory, *parts)

    def files(self, state):
        """The names of the files below a directory of the box."""
        return sorted(name for _, _, names in os.walk(self.path(state)) for name in names)

    def ledger(self):
        return [json.loads(path.read_text())["body"] for path in self.path("ledger").glob("*/*")]

    def notes(self):
        return [json.loads(path.read_text())["body"] for path in self.path("notes").glob("*/*")]

    def put_ticket(self, body, number=1):
        identity = holdfast.new_id()
        body = dict({"id": identity, "key": identity, "isKeyed": False, "files": [], "createdAt": "2026-11-17T05:19:48.559Z", "producer": {"host": "h", "pid": 1}, "priority": 5}, **body)
        data = record("ticket", body, number)
        self.path("incoming/5/0000000001").mkdir(parents=True, exist_ok=True)
        self.path("incoming/5/0000000001", identity + "-0.json").write_bytes(data)
        return identity

    def make_due(self):
        """The time of every parked claim is over."""
        for path in self.path("parked").iterdir():
            path.rename(path.with_name("0" * 16 + path.name[16:]))
        self.box._due_at = float("-inf")


class Publishing(HandoffCase):
    def test_what_is_published_arrives_whole(self):
        given = {"a, {b} ü.txt": "small ü", "empty": b"", "path.bin": self.path("..", "source")}
        given["path.bin"].write_bytes(b"\0\xff")
        published = self.box.publish(given, key="k", meta={"n": [1, None, "ü\u2028"]}, priority=0, content_types={"empty": "text/csv"})
        delivery = self.box.take()
        self.assertEqual((delivery.id, delivery.key, delivery.attempt, delivery.meta, delivery.priority), (published.id, "k", 1, {"n": [1, None, "ü\u2028"]}, 0))
        self.assertEqual([(each.name, each.size, each.content_type) for each in delivery.files], [("a, {b} ü.txt", 8, None), ("empty", 0, "text/csv"), ("path.bin", 2, None)])
        self.assertEqual((delivery.text("a, {b} ü.txt"), delivery.read("path.bin")), ("small ü", b"\0\xff"))
        self.assertLess(abs(delivery.created_at.timestamp() - time.time()), 60)
        self.assertTrue(delivery.ack())
        self.assertEqual(self.files("archive"), [published.id + "-1.json"])

    def test_large_files_lie_beside_the_ticket_and_can_be_saved(self):
        source = self.path("..", "source")
        source.write_bytes(BIG)
        self.box.publish({"a": BIG, "b": "beside", "c": source})
        delivery = self.box.take()
        target = self.path("..", "target")
        target.mkdir()
        saved = delivery.save_to(target)
        self.assertEqual([Path(saved[name]).read_bytes() for name in "abc"], [BIG, b"beside", BIG])
        with self.assertRaises(FileExistsError):
            delivery.save_to(target)

    def test_everything_is_synced_before_the_answer(self):
        done = []

        def spy(name, path_of):
            original = getattr(os, name)

            def call(*args, **options):
                result = original(*args, **options)
                done.append((name, path_of(*args)))
                return result

            return mock.patch.object(os, name, call)

        with spy("fsync", lambda fd: os.readlink("/proc/self/fd/%d" % fd) if os.path.exists("/proc") else fd), spy("rename", lambda *paths: paths):
            published = self.box.publish({"a": BIG})
        if not os.path.exists("/proc"):
            self.skipTest("the names of descriptors are not known here")
        payload = str(self.path("data", published.id[-2:], published.id))
        moved = next(index for index, each in enumerate(done) if each[0] == "rename")
        before = [path for name, path in done[:moved]]
        after = [path for name, path in done[moved + 1 :]]
        for path in [payload + "/a", payload, os.path.dirname(payload), str(self.path("data")), self.directory, str(self.path("incoming"))]:
            self.assertIn(path, before)
        self.assertEqual(before[-1], done[moved][1][0])
        target = os.path.dirname(done[moved][1][1])
        self.assertEqual(after, [target, os.path.dirname(target)])

    def test_a_sync_that_fails_after_the_move_is_not_acknowledged(self):
        original = holdfast._sync_directory

        def failing(path):
            if re.search(r"incoming/5/\d+$", path):
                raise OSError(5, "no", path)
            original(path)

        with mock.patch.object(holdfast, "_sync_directory", failing), self.assertRaises(OutcomeUnknown):
            self.box.publish({"a": "x"}, key="k")
        self.box.publish({"a": "x"}, key="k")
        self.box.work(lambda delivery: None, until_empty=True)
        self.assertEqual(len(self.ledger()), 1)

    def test_a_key_is_done_once_and_known_from_then_on(self):
        first, second = self.box.publish({"a": "1"}, key="k"), self.box.publish({"a": "2"}, key="k")
        results = []
        while (delivery := self.box.take()) is not None:
            results.append((delivery.id, delivery.ack({"by": delivery.id})))
        self.assertEqual(results, [(first.id, True)])
        self.assertEqual(self.files("archive"), sorted([first.id + "-1.json", second.id + "-1-duplicate.json"]))
        third = self.box.publish({"a": "3"}, key="k")
        self.assertEqual((third.id, third.duplicate), (first.id, True))
        self.assertEqual(self.ledger()[0]["result"], {"by": first.id})

    def test_a_key_of_a_program_of_holdfast_is_seen_in_both_forms(self):
        for number, body in enumerate([{"id": "0" * 36, "key": "k0"}, {"entries": [{"id": "1" * 36, "key": "other"}, {"id": "2" * 36, "key": "k1"}]}]):
            digest = hashlib.sha256(("k%d" % number).encode()).hexdigest()
            path = self.path("keys", digest[:3], digest)
            path.parent.mkdir(parents=True)
            path.write_bytes(record("ticket", body, number + 1))
        self.assertEqual([self.box.publish({"a": ""}, key=key).id for key in ("k0", "k1")], ["0" * 36, "2" * 36])
        path.write_bytes(record("ticket", {}, 3))
        with self.assertRaises(NewerFormat):
            self.box.publish({"a": ""}, key="k1")
        path.write_bytes(b"torn")
        self.assertFalse(self.box.publish({"a": ""}, key="k1").duplicate)

    def test_what_cannot_be_handed_over_is_refused_before_anything_is_written(self):
        before = sorted(map(str, self.path().rglob("*")))
        names = ["", ".", "..", "a/b", "a\\b", "a\0", "a\n", "a:b", "a?", "con", "NUL.txt", "com¹", "a.", "a ", "x" * 201, "ü" * 101, "u\u0308", "\udcff"]
        for name in names:
            with self.subTest(name), self.assertRaises(InvalidName):
                self.box.publish({name: ""})
        with self.assertRaises(InvalidName):
            self.box.publish({"a": "", "A": ""})
        nested = []
        for _ in range(300):
            nested = [nested]
        wrong = [dict(key=""), dict(key="x" * 1025), dict(key="\ud800"), dict(group=""), dict(priority=10), dict(priority=-1), dict(priority=True), dict(delay=-1), dict(delay=float("nan")), dict(expires=float("inf"))]
        wrong += [dict(meta=each) for each in (float("nan"), 2**53, {1: 2}, object(), "\ud800", nested, {"a": b""})]
        for options in wrong:
            with self.subTest(options), self.assertRaises((ValueError, TypeError)):
                self.box.publish({"a": ""}, **options)
        for files in [{}, {"a": 1}, {"a": None}]:
            with self.assertRaises((ValueError, TypeError)):
                self.box.publish(files)
        with self.assertRaises(FileNotFoundError):
            self.box.publish({"a": self.path("missing")})
        self.assertEqual([path for path in map(str, self.path().rglob("*")) if path not in before and os.path.isfile(path) and not path.endswith("/owner")], [])

    def test_a_delay_an_expiry_and_a_group_are_kept(self):
        delayed = self.box.publish({"a": "delayed"}, delay=3000)
        expired = self.box.publish({"a": "expired"}, expires=0)
        grouped = self.box.publish({"a": "grouped"}, group="g")
        self.assertIsNone(self.box.take())
        self.assertEqual(self.files("error"), [expired.id + "-1.json"])
        self.assertEqual(self.notes()[0]["outcome"], "expired")
        waiting = next(self.path("delayed").glob("*/*%s*" % delayed.id))
        self.assertLess(abs(int(waiting.name[:16]) / 1000 - time.time() - 3000), 60)
        # Its time comes.
        self.path("delayed/0000000001").mkdir()
        waiting.rename(self.path("delayed/0000000001", "0" * 16 + waiting.name[16:]))
        self.box._due_at = float("-inf")
        self.assertEqual(self.box.take().id, delayed.id)
        # A worker of Holdfast gives it its place.
        self.assertEqual([name[17:] for name in self.files("delayed")], [grouped.id + "-0.json"])

    def test_a_lower_priority_is_delivered_first(self):
        ids = [self.box.publish({"a": ""}, priority=priority).id for priority in (9, 0, 5)]
        self.assertEqual([self.box.take().id for _ in ids], [ids[1], ids[2], ids[0]])


class Working(HandoffCase):
    def test_a_ticket_is_claimed_by_one_of_many_threads(self):
        ids = {self.box.publish({"a": ""}).id for _ in range(20)}
        taken = []
        boxes = [self.box, self.box, Handoff(self.directory), Handoff(self.directory)]

        def work(box):
            while (delivery := box.take()) is not None:
                taken.append(delivery.id)
                delivery.ack()

        threads = [threading.Thread(target=work, args=(box,)) for box in boxes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(taken), sorted(ids))
        self.assertEqual(len(self.files("archive")), 20)

    def test_retry_fail_and_release_leave_their_marks(self):
        identity = self.box.publish({"a": ""}).id
        delivery = self.box.take()
        delivery.release()
        self.assertEqual(self.box._path("incoming"), str(self.path("incoming")))
        self.assertEqual(self.files("incoming"), [identity + "-1~1.json"])
        delivery = self.box.take()
        self.assertEqual(delivery.attempt, 1)
        self.assertTrue(delivery.retry("busy \udcff", delay=0))
        delivery = self.box.take(wait=10)
        self.assertEqual(delivery.attempt, 2)
        delivery.fail("no such customer")
        self.assertEqual(self.files("error"), [identity + "-3~1.json"])
        self.assertEqual(sorted((note["attempt"], note["outcome"], note["reason"]) for note in self.notes()), [(1, "retry", "busy \ufffd"), (2, "fail", "no such customer")])
        for call in (delivery.ack, delivery.retry, delivery.release, delivery.heartbeat, lambda: delivery.fail("")):
            with self.assertRaises(ClaimLost):
                call()

    def test_the_last_attempt_becomes_a_dead_letter_and_so_does_a_ticket_that_kills_its_workers(self):
        failing, killing = self.box.publish({"a": ""}).id, self.box.publish({"a": ""}, priority=9).id
        self.assertTrue(self.box.take(attempts=2).retry("", delay=0))
        self.box._due_at = self.box._listed_at = float("-inf")
        time.sleep(0.002)  # Until it is due.
        self.assertFalse(self.box.take(attempts=2).retry("again"))
        for _ in range(2):
            self.assertEqual(self.box.take(attempts=2, wait=10).id, killing)
            self.make_due()
        self.assertIsNone(self.box.take(attempts=2))
        self.assertEqual(self.files("error"), sorted([failing + "-2.json", killing + "-3.json"]))
        lost = [note for note in self.notes() if note["outcome"] == "lost"]
        self.assertEqual(sorted(note["attempt"] for note in lost), [1, 2, 3])

    def test_a_claim_returns_when_its_time_is_over_and_its_worker_commits_nothing(self):
        identity = self.box.publish({"a": ""}).id
        late = self.box.take()
        self.make_due()
        delivery = self.box.take()
        self.assertEqual((delivery.id, delivery.attempt), (identity, 2))
        for call in (late.ack, late.heartbeat, late.release, late.retry, lambda: late.fail("")):
            with self.assertRaises(ClaimLost):
                call()
        self.assertEqual(self.ledger(), [])
        self.assertTrue(delivery.ack("second"))
        self.assertEqual(self.ledger()[0]["result"], "second")

    def test_a_heartbeat_keeps_the_claim(self):
        self.box.publish({"a": ""})
        delivery = self.box.take(hold=4)
        [first] = self.files("parked")
        other = Handoff(self.directory)
        with delivery.kept():
            # A listing may miss what is renamed meanwhile.
            while int((self.files("parked") or [first])[0][:16]) <= int(first[:16]) + 500:
                time.sleep(0.05)
            self.assertIsNone(other.take())
        delivery.heartbeat(600)
        self.assertGreater(int(self.files("parked")[0][:16]), int(first[:16]) + 500_000)
        self.assertTrue(delivery.ack())

    def test_a_worker_that_was_stopped_just_before_its_commit_has_the_same_result_as_the_other(self):
        self.box.publish({"a": ""})
        late = self.box.take()
        self.make_due()
        delivery = self.box.take()
        # As if it had been stopped between its heartbeat and its commit.
        with mock.patch.object(late, "heartbeat"):
            self.assertTrue(late.ack("late"))
        with self.assertRaises(ClaimLost):
            delivery.ack("ours")
        self.assertEqual([each["result"] for each in self.ledger()], ["late"])
        self.assertEqual(len(self.files("archive")), 1)
        self.assertEqual(self.files("parked"), [])

    def test_an_acknowledgement_whose_archive_fails_can_be_repeated(self):
        self.box.publish({"a": ""})
        delivery = self.box.take()
        original = self.box._move

        def failing(source, directory, name):
            if "archive" in directory:
                raise OSError(28, "full")
            return original(source, directory, name)

        with mock.patch.object(self.box, "_move", failing), self.assertRaises(OSError):
            delivery.ack("one")
        self.assertEqual(len(self.ledger()), 1)
        self.assertTrue(delivery.ack("one"))
        self.assertEqual(len(self.files("archive")), 1)

    @unittest.skipIf(not hasattr(os, "geteuid") or os.geteuid() != 0, "only root can become another user")
    def test_a_worker_without_permission_fails_and_does_not_find_the_box_empty(self):
        self.box.publish({"a": ""})
        os.chmod(self.path(".."), 0o755)
        self.box.take().release()
        os.seteuid(65534)
        try:
            with self.assertRaises(PermissionError):
                self.box.take()
        finally:
            os.seteuid(0)

    def test_work_acknowledges_returns_and_fails_as_the_handler_says(self):
        for name in ("done", "fail", "raise"):
            self.box.publish({"a": name}, key=name)

        def handler(delivery):
            if delivery.text("a") == "fail":
                raise Fail("never")
            if delivery.text("a") == "raise":
                raise ZeroDivisionError("later")
            return {"ok": True}

        self.assertEqual(self.box.work(handler, until_empty=True), 3)
        self.assertEqual([(each["key"], each["result"]) for each in self.ledger()], [("done", {"ok": True})])
        self.assertEqual({(note["outcome"], note["reason"]) for note in self.notes()}, {("fail", "never"), ("retry", "ZeroDivisionError: later")})
        self.assertEqual([len(self.files(state)) for state in ("archive", "error", "delayed", "parked", "incoming")], [1, 1, 1, 0, 0])

    def test_work_that_is_interrupted_gives_its_ticket_back(self):
        identity = self.box.publish({"a": ""}).id
        with self.assertRaises(KeyboardInterrupt):
            self.box.work(mock.Mock(side_effect=KeyboardInterrupt), until_empty=True)
        self.assertEqual(self.files("incoming"), [identity + "-1~1.json"])

    def test_a_paused_box_gives_no_ticket(self):
        self.box.publish({"a": ""})
        self.path("pause.json").write_text("")
        self.assertIsNone(self.box.take())
        self.path("pause.json").unlink()
        self.assertIsNotNone(self.box.take())

    def test_a_claim_waits_for_a_backup_that_lists_the_tickets(self):
        self.box.publish({"a": ""})
        self.path("scan.json").write_bytes(record("scan", {"id": "s", "ms": 60_000}))
        taken = []
        thread = threading.Thread(target=lambda: taken.append(self.box.take()))
        thread.start()
        while not self.files("parked"):
            time.sleep(0.01)
        time.sleep(0.1)  # Time passes, in which it could go on.
        self.assertEqual(taken, [])
        self.path("scan.json").unlink()
        thread.join()
        self.assertIsNotNone(taken[0])
        # A scan that is over long ago is removed.
        self.box.publish({"a": ""})
        self.path("scan.json").write_bytes(record("scan", {"id": "s", "ms": 10}))
        self.assertIsNotNone(self.box.take())
        self.assertFalse(self.path("scan.json").exists())


class Damage(HandoffCase):
    def test_a_directory_without_a_box_is_refused_and_nothing_is_written(self):
        empty = self.path("..", "empty")
        empty.mkdir()
        with self.assertRaises(NotABox) as caught:
            Handoff(empty)
        self.assertEqual(caught.exception.code, "NOT_A_STORE")
        self.assertEqual(list(empty.iterdir()), [])
        # A share that is not there any more.
        self.path("box.json").unlink()
        for call in (self.box.take, lambda: self.box.publish({"a": ""})):
            with self.assertRaises(NotABox):
                call()

    def test_a_newer_or_damaged_box_is_refused(self):
        for data, error in [(record("box", {"id": "x", "lanes": 64}, 3), NewerFormat), (record("log", {}), Corrupt), (b"{}\n", Corrupt), (b"", Corrupt), (record("box", {"lanes": 32}), Corrupt)]:
            self.path("box.json").write_bytes(data)
            with self.assertRaises(error):
                Handoff(self.directory)
        self.path("box.json").write_bytes(record("box", {"id": "x", "lanes": 64, "sharesKeys": True}, 2))
        Handoff(self.directory)

    def test_a_damaged_ticket_costs_only_itself(self):
        good = self.box.publish({"a": "good"}).id
        deep = b'{"kind":"ticket","format":1,"by":"x","body":' + b"[" * 100_000
        file = {"name": "a", "size": 1, "sha256": "0" * 64}
        bodies = [{"files": "x"}, {"files": [dict(file, name="../a")]}, {"files": [dict(file, name="a\\b")]}, {"files": [dict(file, size=-1)]}, {"priority": 10}, {"createdAt": "yesterday"}, {"producer": 3}, {"inline": {}, "files": [file]}, {"id": "x"}, {"expiresAt": 3}]
        bad = [self.put_ticket(body) for body in bodies] + [self.put_ticket({}, 2)]
        for data in (b"", b"\0" * 200, record("note", {}), deep + b',"crc":"%08x"}\n' % zlib.crc32(deep)):
            bad.append(self.put_ticket({}))
            self.path("incoming/5/0000000001", bad[-1] + "-0.json").write_bytes(data)
        bad.append(self.put_ticket({}))
        self.path("incoming/5/0000000001", bad[-1] + "-0.json").write_bytes(record("ticket", {})[:-9])
        for make in (lambda path: path.symlink_to(path.name), lambda path: path.symlink_to("/dev/zero"), lambda path: path.mkdir(), os.mkfifo):
            bad.append(self.put_ticket({}))
            path = self.path("incoming/5/0000000001", bad[-1] + "-0.json")
            path.unlink()
            make(path)
        foreign = ["notes.txt", good + ".json", good + "-01.json", good + "-1~2.json", "u" * 36 + "-0.json"]
        for name in foreign:
            self.path("incoming/5/0000000001", name).write_text("foreign")
        self.assertEqual(self.box.take().id, good)
        self.assertIsNone(self.box.take())
        self.assertEqual(sorted(path.name for path in self.path("error").glob("*/*")), sorted(identity + "-1.json" for identity in bad))
        self.assertEqual({note["outcome"] for note in self.notes()}, {"fail"})
        self.assertEqual(self.files("incoming"), sorted(foreign))

    def test_a_payload_that_differs_is_never_seen_by_a_worker(self):
        ids = [self.box.publish({"a": BIG}).id for _ in range(6)]
        paths = [self.path("data", identity[-2:], identity, "a") for identity in ids]
        paths[0].write_bytes(BIG[:-1])
        paths[1].write_bytes(BIG[:-1] + b"y")
        paths[2].unlink()
        for path in paths[3:]:
            path.unlink()
        # Even with the right content.
        self.path("..", "copy").write_bytes(BIG)
        paths[3].symlink_to(self.path("..", "copy"))
        paths[4].mkdir()
        os.mkfifo(paths[5])
        content = {"name": "a", "size": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
        ids += [self.put_ticket({"files": [content], "inline": {"a": text}}) for text in ("eQ==", "!", "ü")]
        ids += [self.put_ticket({"files": [dict(content, name="x" * 300)]})]
        self.assertIsNone(self.box.take())
        self.assertEqual(len(self.files("error")), len(ids))

    def test_a_payload_that_changes_after_the_claim_is_refused_when_it_is_read(self):
        identity = self.box.publish({"a": BIG}).id
        delivery = self.box.take()
        self.path("data", identity[-2:], identity, "a").write_bytes(b"other")
        with self.assertRaises(PayloadMismatch):
            delivery.read("a")

    def test_a_hostile_name_in_a_manifest_leads_nowhere(self):
        sha256 = hashlib.sha256(b"x").hexdigest()
        for name in ("/etc/x", "..", "a/../../x", "a\\..\\x"):
            self.put_ticket({"files": [{"name": name, "size": 1, "sha256": sha256}], "inline": {name: "eA=="}})
        self.assertIsNone(self.box.take())
        # Holdfast would not publish it; on Windows it could mean a device or a stream.
        self.put_ticket({"files": [{"name": "a:b", "size": 1, "sha256": sha256}], "inline": {"a:b": "eA=="}})
        delivery = self.box.take()
        self.assertEqual(delivery.read("a:b"), b"x")
        with self.assertRaises(InvalidName):
            delivery.save_to(self.directory)

    def test_a_damaged_ledger_entry_keeps_its_ticket_waiting_and_no_other(self):
        bad, good = self.box.publish({"a": ""}, key="bad"), self.box.publish({"a": ""}, key="good")
        path = Path(self.box._ledger("bad", 0))
        path.parent.mkdir(parents=True)
        path.write_bytes(b"torn")
        without_record = Path(self.box._ledger("empty", 0))
        without_record.mkdir(parents=True)
        self.assertFalse(self.box.publish({"a": ""}, key="empty", priority=9).duplicate)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(self.box.take().id, good.id)
        self.assertIn(bad.id, str(caught[0].message))
        self.assertIn(bad.id, " ".join(self.files("parked")))

    def test_entries_of_other_forms_are_honoured(self):
        with_outputs, in_block, replayed = (self.box.publish({"a": ""}, key=key) for key in ("outputs", "block", "replayed"))
        entry = {"key": "", "id": "", "claims": 1, "replays": 0, "holder": "", "at": "", "outputs": [], "sent": []}
        directory = Path(self.box._ledger("outputs", 0))
        directory.mkdir(parents=True)
        directory.joinpath("record.json").write_bytes(record("ledger", dict(entry, key="outputs", id=with_outputs.id)))
        block = Path(self.box._ledger("block", 0))
        block.parent.mkdir(parents=True, exist_ok=True)
        block.write_bytes(record("ledger", {"entries": [dict(entry, key="other"), dict(entry, key="block", id=in_block.id)]}))
        waiting = next(self.path("incoming").glob("*/*/%s-0.json" % replayed.id))
        waiting.rename(waiting.with_name(replayed.id + "-1@2.json"))
        old = Path(self.box._ledger("replayed", 0))
        old.parent.mkdir(parents=True, exist_ok=True)
        old.write_bytes(record("ledger", dict(entry, key="replayed", id=replayed.id)))
        delivery = self.box.take()
        self.assertEqual(delivery.id, replayed.id)
        self.assertTrue(delivery.ack("again"))
        self.assertIsNone(self.box.take())
        self.assertEqual(self.files("archive"), sorted([in_block.id + "-1.json", replayed.id + "-2@2.json"]))
        self.assertEqual([name[17:] for name in self.files("parked")], [with_outputs.id + "-1.json"])
        digest = hashlib.sha256(b"replayed\n2").hexdigest()
        self.assertTrue(self.path("ledger", digest[:3], digest).exists())

    def test_a_clock_that_was_set_loses_nothing(self):
        identity = self.box.publish({"a": ""}).id
        delivery = self.box.take(hold=60)
        real = time.time_ns
        with mock.patch.object(time, "time_ns", lambda: real() - 10**9 * 3600):
            # An hour back: the claim lasts longer, and what is published arrives.
            other = self.box.publish({"a": ""}).id
            self.assertEqual(self.box.take().id, other)
            self.assertIsNone(self.box.take())
            delivery.heartbeat()
        with mock.patch.object(time, "time_ns", lambda: real() + 10**9 * 7200):
            # Two hours ahead: claims return early, and the ledger still has each once.
            self.box._due_at = float("-inf")
            again = {self.box.take().id: 1, self.box.take().id: 1}
            self.assertEqual(set(again), {identity, other})
            with self.assertRaises(ClaimLost):
                delivery.ack()


@unittest.skipUnless(hasattr(os, "fork"), "no fork here")
class Kills(HandoffCase):
    """Kills a process before each of its calls to the disk, one after the other; without DEEP=1, before every fifth."""

    STEP = 1 if os.environ.get("DEEP") else 5
    CALLS = ("open", "write", "fsync", "rename", "link", "unlink", "mkdir", "rmdir", "stat", "scandir")

    def run_killed(self, action, count):
        """True if the action was killed at its call number `count`."""
        child = os.fork()
        if child == 0:
            try:
                left = [count]

                def killing(original):
                    def call(*args, **options):
                        left[0] -= 1
                        if left[0] == 0:
                            os.kill(os.getpid(), signal.SIGKILL)
                        return original(*args, **options)

                    return call

                for name in self.CALLS:
                    setattr(os, name, killing(getattr(os, name)))
                holdfast.open = killing(io.open)
                action()
                os._exit(0)
            except BaseException as error:
                sys.stderr.write("%r\n" % error)
                os._exit(1)
        status = os.waitpid(child, 0)[1]
        self.assertIn(status, (0, signal.SIGKILL), "call %d" % count)
        return status != 0

    def each_kill(self, prepare, action, check):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        for count in range(1, 400, self.STEP):
            self.directory = os.path.join(os.path.realpath(scratch.name), str(count))
            self.make_box(self.directory)
            self.box = Handoff(self.directory)
            prepare()
            was_killed = self.run_killed(action, count)
            with self.subTest(count):
                check(was_killed)
            if not was_killed:
                self.assertGreater(count, 10)
                return
        self.fail("it never ends")

    def drain(self):
        """A new process works everything; its results by key."""
        box = Handoff(self.directory)
        self.make_due() if self.path("parked").exists() else None
        done = []
        while (delivery := box.take(hold=30)) is not None:
            self.assertEqual([len(delivery.read(file.name)) for file in delivery.files], [file.size for file in delivery.files])
            delivery.ack("drained")
            done.append(delivery.id)
        box.close()
        self.assertEqual([self.files(state) for state in ("incoming", "parked", "error")], [[], [], []])
        return done

    def check_published(self, was_killed):
        self.box = Handoff(self.directory)
        self.box.publish({"a": BIG if self.is_big else "x"}, key="k")
        self.drain()
        # Acknowledged or not: once in the ledger, and no payload without a ticket.
        self.assertEqual([each["key"] for each in self.ledger()], ["k"])
        tickets = {name[:36] for name in self.files("archive")}
        self.assertTrue(was_killed or len(tickets) == 2)
        self.assertEqual({path.name for path in self.path("data").glob("*/*")} - tickets, set())
        self.box.close()
        for path in self.path("foreign").glob("*"):
            # A directory that was never finished goes by its age.
            self.assertIn(os.listdir(path), ([], ["owner"]))
            for each in path.iterdir():
                self.assertEqual(each.read_bytes(), b"")
            os.utime(path, (1, 1))
        Handoff(self.directory).close()
        self.assertEqual(self.files("foreign"), [])
        self.assertEqual(list(self.path("foreign").glob("*")), [])

    def test_a_producer_that_is_killed_at_any_point_publishes_all_or_nothing(self):
        for self.is_big in (False, True):
            self.each_kill(lambda: None, lambda: Handoff(self.directory).publish({"a": BIG if self.is_big else "x"}, key="k"), self.check_published)

    def work_killed(self, settle):
        def action():
            settle(Handoff(self.directory).take())

        return action

    def test_a_worker_that_is_killed_at_any_point_commits_once_or_leaves_the_ticket(self):
        def check(_):
            done = self.drain()
            self.assertEqual(len(self.ledger()), 1)
            self.assertEqual(self.ledger()[0]["result"], "drained" if done else "killed")
            self.assertEqual(len(self.files("archive")), 1)

        self.each_kill(lambda: self.box.publish({"a": BIG}), self.work_killed(lambda delivery: delivery.ack("killed")), check)

    def test_a_worker_that_is_killed_while_it_returns_or_fails_a_ticket_loses_none(self):
        def check(_):
            for path in self.path().glob("delayed/*/*"):
                path.rename(path.with_name("0" * 16 + path.name[16:]))
            tickets = self.drain() if self.files("error") == [] else self.files("error")
            self.assertEqual(len(tickets), 1)
            if self.files("error"):
                self.assertEqual([note["reason"] for note in self.notes()], ["failed"])

        def prepare():
            self.box.publish({"a": ""})

        self.each_kill(prepare, self.work_killed(lambda delivery: delivery.release()), check)
        for settle in [lambda delivery: delivery.retry("later", delay=0.001), lambda delivery: delivery.fail("failed")]:
            self.each_kill(prepare, self.work_killed(settle), check)

    def test_a_lock_whose_holder_is_killed_at_any_point_is_free_at_once(self):
        lock = str(self.path("job.lock"))

        def action():
            with holdfast.Semaphore(lock).acquire():
                pass

        for stale in (False, True):
            for count in range(1, 100, self.STEP):
                if stale:
                    Path(lock).write_text("pid=999999\ntimestamp=1\n")
                was_killed = self.run_killed(action, count)
                with holdfast.Semaphore(lock).acquire(timeout=0):
                    pass
                holdfast.Semaphore(lock).clean()
                left = [name for name in os.listdir(self.directory) if name.startswith("job.lock") and not name.endswith(".guard")]
                # What has no record is removed by its age.
                self.assertEqual([name for name in left if Path(self.directory, name).stat().st_size > 0 and b"token" in Path(self.directory, name).read_bytes()], [])
                if not was_killed:
                    self.assertGreater(count, 4)
                    break
            else:
                self.fail("it never ends")


if __name__ == "__main__":
    unittest.main()
