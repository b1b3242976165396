"""The guarantees of a semaphore: one holder at a time, whatever the holder does and whatever lies under the name."""

import contextlib
import errno
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

import holdfast
from holdfast import InvalidPath, LockLost, LockRecord, LockTimeout, NotHeld, Semaphore

PACKAGE = str(Path(holdfast.__file__).parent.parent)
NOW = int(time.time())


def start(program, *args):
    """Another process; its lines begin when it prints them."""
    env = dict(os.environ, PYTHONPATH=PACKAGE)
    return subprocess.Popen([sys.executable, "-u", "-c", program, *args], env=env, stdout=subprocess.PIPE, text=True)


HOLDER = """
import sys, time
from holdfast import Semaphore
with Semaphore(sys.argv[1], mode=0o644).acquire(tag="holder"):
    print("held")
    time.sleep(600)
"""


class SemaphoreCase(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.directory = os.path.realpath(scratch.name)
        self.path = os.path.join(self.directory, "job.lock")
        self.semaphore = Semaphore(self.path)

    def plant(self, text, age=0.0):
        """A file of another program, last changed `age` seconds ago."""
        data = text if isinstance(text, bytes) else text.encode()
        with open(self.path, "wb") as file:
            file.write(data)
        os.utime(self.path, (time.time() - age, time.time() - age))

    def names(self):
        return sorted(os.listdir(self.directory))

    def hold_elsewhere(self):
        child = start(HOLDER, self.path)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), "held\n")
        return child

    def assertAcquires(self, semaphore=None):
        hold = (semaphore or self.semaphore).try_acquire()
        self.assertIsNotNone(hold)
        self.assertTrue(hold.release())
        self.assertNotIn("job.lock", self.names())


class Holding(SemaphoreCase):
    def test_a_lock_has_one_holder_and_is_free_after_its_release(self):
        hold = self.semaphore.acquire(tag="nightly")
        self.assertEqual(self.names(), ["job.lock"])
        self.assertIsNone(Semaphore(self.path).try_acquire())
        status = Semaphore(self.path).status()
        self.assertEqual((status.locked, status.stale, status.mine, status.record), (True, False, False, hold.record))
        self.assertTrue(self.semaphore.status().mine)
        hold.check()
        self.assertTrue(hold.release())
        self.assertTrue(hold.release())
        self.assertEqual(self.names(), [])
        with self.assertRaises(NotHeld):
            hold.check()

    def test_the_record_has_the_keys_of_the_protocol_first(self):
        hold = self.semaphore.acquire(tag="a tag")
        lines = Path(self.path).read_text().splitlines()
        self.assertEqual(lines[0], "pid=%d" % os.getpid())
        self.assertRegex(lines[1], r"^timestamp=\d+$")
        self.assertEqual(lines[2], "tag=a tag")
        self.assertRegex(lines[3], r"^token=[0-9a-hjkmnp-tv-z]{26}$")
        self.assertEqual(hold.record, holdfast.parse_lock_file(Path(self.path).read_bytes()))
        hold.release()

    def test_a_waiter_gets_the_lock_when_it_is_released_and_is_refused_when_its_time_is_up(self):
        hold = self.semaphore.acquire()
        with self.assertRaises(LockTimeout) as caught:
            Semaphore(self.path, retry=0.01).acquire(timeout=0.05)
        self.assertEqual(caught.exception.code, "LOCK_TIMEOUT")
        self.assertEqual(caught.exception.facts["record"], hold.record)
        got = []
        waiter = threading.Thread(target=lambda: got.append(Semaphore(self.path, retry=0.01).acquire(timeout=60)))
        waiter.start()
        hold.release()
        waiter.join()
        self.assertTrue(got[0].release())

    def test_threads_with_one_semaphore_or_several_exclude_each_other(self):
        counter = [0]
        shared = Semaphore(self.path, retry=0.001, fsync=False)

        def count(semaphore):
            for _ in range(15):
                with semaphore.acquire():
                    before = counter[0]
                    time.sleep(0.0005)  # Another thread may run here.
                    counter[0] = before + 1

        each = [shared, shared, Semaphore(self.path, retry=0.001, fsync=False), Semaphore(self.path, retry=0.001, fsync=False)]
        threads = [threading.Thread(target=count, args=(semaphore,)) for semaphore in each]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(counter[0], 60)

    def test_work_whose_lock_was_replaced_ends_with_lock_lost_and_the_other_lock_stays(self):
        with self.assertRaises(LockLost):
            with self.semaphore.acquire() as hold:
                os.unlink(self.path)
                self.plant("pid=1\ntimestamp=%d\n" % NOW)
                with self.assertRaises(LockLost):
                    hold.check()
        self.assertEqual(Path(self.path).read_text(), "pid=1\ntimestamp=%d\n" % NOW)

    def test_an_error_of_the_work_is_passed_on_and_the_lock_is_released(self):
        with self.assertRaises(ZeroDivisionError):
            with self.semaphore.acquire():
                1 // 0
        self.assertEqual(self.names(), [])

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_forked_child_does_not_hold_and_does_not_release_the_lock_of_its_parent(self):
        with self.semaphore.acquire() as hold:
            child = os.fork()
            if child == 0:
                answers = []
                with contextlib.suppress(NotHeld):
                    hold.check()
                    answers.append("checked")
                hold.release()
                hold.__exit__(None, None, None)
                if self.semaphore.status().mine or self.semaphore.try_acquire() is not None:
                    answers.append("held")
                os._exit(len(answers))
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            hold.check()
        self.assertEqual(self.names(), [])


@unittest.skipUnless(sys.platform.startswith("linux") or sys.platform == "darwin", "nothing is taken over here")
class TakingOver(SemaphoreCase):
    def test_the_lock_of_a_killed_process_is_free_at_once_and_that_of_a_living_one_never(self):
        child = self.hold_elsewhere()
        os.kill(child.pid, signal.SIGSTOP)
        self.assertIsNone(Semaphore(self.path, stale=0).try_acquire())
        child.kill()
        child.wait()
        self.assertEqual(self.semaphore.status().stale, True)
        self.assertAcquires()
        self.assertEqual(self.names(), ["job.lock.guard"])

    def test_a_reused_pid_is_another_process(self):
        if not sys.platform.startswith("linux"):
            self.skipTest("the start of a process is not known here")
        host = holdfast._this_host()
        record = LockRecord(host.pid, NOW, None, "x" * 26, host.name, host.boot, host.space, str(int(host.start) + 1), "local")
        self.plant(holdfast.format_lock_file(record))
        self.assertAcquires()

    def test_a_lock_of_another_program_is_judged_by_its_age(self):
        self.plant("pid=999999\ntimestamp=%d\n" % (NOW - 3000))
        self.assertIsNone(self.semaphore.try_acquire())
        self.assertIsNone(Semaphore(self.path, stale=None).try_acquire())
        self.assertAcquires(Semaphore(self.path, stale=2000))

    def test_a_lock_of_another_program_whose_process_lives_is_held_at_any_age(self):
        if not sys.platform.startswith("linux"):
            self.skipTest("the start of a process is not known here")
        child = subprocess.Popen(["sleep", "600"])
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.plant("pid=%d\ntimestamp=%d\n" % (child.pid, time.time() + 1))
        time.sleep(1.1)  # The protocol records whole seconds: until the lock is in the past.
        self.assertIsNone(Semaphore(self.path, stale=0).try_acquire())
        child.kill()
        child.wait()
        self.assertAcquires(Semaphore(self.path, stale=0))

    def test_a_clock_that_was_set_back_blocks_for_the_stale_time_not_for_years(self):
        self.plant("pid=999999\ntimestamp=%d\n" % (NOW + 10**9))
        self.assertIsNone(self.semaphore.try_acquire())
        self.plant("pid=999999\ntimestamp=%d\n" % (NOW + 10**9), age=3700)
        self.assertAcquires()

    def test_a_torn_lock_is_held_for_ten_seconds(self):
        for text in ["", "\n", "\0\0", "pid=", "pid=12", "ti", "pid=12\ntimestamp=\0\0\0"]:
            with self.subTest(text):
                self.plant(text)
                self.assertIsNone(self.semaphore.try_acquire())
                self.plant(text, age=11)
                self.assertAcquires()

    def test_a_record_that_cannot_be_read_is_held_for_the_stale_time(self):
        for text in ["pid=me\ntimestamp=1\n", "pid=1\ntimestamp=1700000000.5\n", "pid=0\ntimestamp=1\n", "pid=-1\ntimestamp=1\n", "pid=²\ntimestamp=1\n"]:
            with self.subTest(text):
                self.plant(text, age=3000)
                self.assertIsNone(self.semaphore.try_acquire())
                self.plant(text, age=3700)
                self.assertAcquires()

    def test_a_stale_lock_of_the_directory_form_is_taken_over_and_a_bare_directory_is_not(self):
        os.mkdir(self.path)
        self.assertIsNone(Semaphore(self.path, stale=0).try_acquire())
        Path(self.path, "owner").write_text("pid=999999\ntimestamp=1\n")
        self.assertAcquires()
        os.mkdir(self.path)
        Path(self.path, "owner").write_text("pid=999999\ntimestamp=1\n")
        Path(self.path, "data.csv").write_text("1")
        with self.assertLogsNothingRemoved():
            hold = self.semaphore.try_acquire()
        self.assertTrue(hold.release())

    @contextlib.contextmanager
    def assertLogsNothingRemoved(self):
        """A file of another program in a lock directory is never removed, wherever the directory goes."""
        yield
        found = [name for name in self.names() if name.endswith(".tmp")]
        self.assertEqual([os.listdir(os.path.join(self.directory, name)) for name in found], [["data.csv"]])

    def test_a_lock_that_replaces_a_stale_one_in_the_last_moment_is_put_back(self):
        fresh = "pid=999998\ntimestamp=%d\n" % NOW
        for step in ("_is_still_stale", "_new_claim"):
            with self.subTest(step):
                self.plant("pid=999999\ntimestamp=1\n")
                semaphore = Semaphore(self.path)
                original = getattr(semaphore, step)

                def replace(*args):
                    result = original(*args)
                    os.unlink(self.path)
                    self.plant(fresh)
                    return result

                setattr(semaphore, step, replace)
                with mock.patch.object(holdfast, "_rename", wraps=holdfast._rename) as moves:
                    self.assertIsNone(semaphore.try_acquire())
                # The last check is the one before the move: only what comes after it is moved, and put back.
                self.assertEqual(moves.call_count, 1 if step == "_is_still_stale" else 0)
                self.assertEqual(Path(self.path).read_text(), fresh)
                self.assertEqual(self.names(), ["job.lock", "job.lock.guard"])

    def test_a_free_name_that_was_won_counts_once_no_taker_can_have_moved_it(self):
        fresh = "pid=999998\ntimestamp=%d\n" % NOW
        answers = []
        with holdfast._GuardFile(self.path) as guard:
            self.assertTrue(guard.try_lock())
            thread = threading.Thread(target=lambda: answers.append(self.semaphore.try_acquire()))
            thread.start()
            while not os.path.exists(self.path):
                time.sleep(0.001)
            # As a taker that had moved the lock of another program by mistake, and puts it back.
            os.unlink(self.path)
            self.plant(fresh)
            self.assertEqual(answers, [])
        thread.join()
        self.assertEqual(answers, [None])
        self.assertEqual(Path(self.path).read_text(), fresh)

    def test_of_processes_that_race_for_a_stale_lock_one_wins(self):
        racer = """
import os, random, sys, time
from holdfast import Semaphore

def dawdling(call):
    def later(*args, **options):
        if random.random() < 0.3:
            time.sleep(random.random() * 0.008)
        return call(*args, **options)
    return later

for name in ("rename", "link", "open"):
    setattr(os, name, dawdling(getattr(os, name)))
directory, begin, rounds = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
for n in range(rounds):
    time.sleep(max(0, begin + n * 0.03 - time.time()))
    if Semaphore("%s/%d/job.lock" % (directory, n), fsync=False).try_acquire() is not None:
        print(n)
print("over")
sys.stdin.read()
"""
        rounds = 40
        for n in range(rounds):
            os.mkdir(os.path.join(self.directory, str(n)))
            Path(self.directory, str(n), "job.lock").write_text("pid=4711\ntimestamp=1000000000\n")
        env = dict(os.environ, PYTHONPATH=PACKAGE)
        args = [sys.executable, "-u", "-c", racer, self.directory, str(time.time() + 1), str(rounds)]
        children = [subprocess.Popen(args, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(6)]
        won = []
        for child in children:
            for line in iter(child.stdout.readline, "over\n"):
                won.append(int(line))
        # Not before all are done: the lock of a process that has ended is stale.
        for child in children:
            child.communicate()
            child.stdout.close()
        self.assertEqual(sorted(won), list(range(rounds)))

    def test_processes_of_which_some_are_killed_hold_the_lock_one_at_a_time(self):
        member = """
import os, random, sys, time
from holdfast import Semaphore

lock, journal = sys.argv[1:]
note = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
while True:
    with Semaphore(lock, retry=0.002, fsync=False).acquire():
        os.write(note, b"begin %d\\n" % os.getpid())
        time.sleep(random.random() / 500)
        os.write(note, b"end %d\\n" % os.getpid())
"""
        journal = Path(self.directory, "journal")
        journal.write_text("")
        children, killed = [start(member, self.path, str(journal)) for _ in range(3)], set()
        for _ in range(6):
            before = journal.stat().st_size
            while journal.stat().st_size < before + 500:
                time.sleep(0.01)
            children[0].kill()
            children[0].wait()
            children[0].stdout.close()
            killed.add(str(children.pop(0).pid))
            children.append(start(member, self.path, str(journal)))
        for child in children:
            child.kill()
            child.wait()
            child.stdout.close()
        inside = None
        for line in journal.read_text().splitlines():
            what, pid = line.split()
            if what == "begin":
                self.assertTrue(inside is None or inside in killed, "%s while %s was inside" % (line, inside))
                inside = pid
            else:
                self.assertEqual(inside, pid)
                inside = None
        self.assertAcquires()


class WhatIsNoLock(SemaphoreCase):
    def test_a_file_that_is_no_lock_is_never_touched(self):
        record = "pid=999999\ntimestamp=1\n"
        for text in ["123\n", "{}", "GEM\n  remote: x\n", "a=1\nnot a field\n", "\x01", "x" * 70_000, record + "\0" * 70_000]:
            with self.subTest(text[:20]):
                self.plant(text, age=9999)
                before = Path(self.path).read_bytes()
                for call in (self.semaphore.try_acquire, self.semaphore.acquire, self.semaphore.status, self.semaphore.clean, self.semaphore.force_release):
                    with self.assertRaises(InvalidPath):
                        call()
                self.assertEqual(Path(self.path).read_bytes(), before)
                self.assertEqual(self.names(), ["job.lock"])

    def test_settings_count_as_held_for_ten_seconds_and_then_are_no_lock(self):
        self.plant("user=ada\npid=7\n")
        self.assertIsNone(self.semaphore.try_acquire())
        self.plant("user=ada\npid=7\n", age=11)
        with self.assertRaises(InvalidPath):
            self.semaphore.try_acquire()
        self.assertEqual(Path(self.path).read_text(), "user=ada\npid=7\n")

    @unittest.skipUnless(hasattr(os, "mkfifo"), "no pipes here")
    def test_a_pipe_and_a_socket_are_refused_without_waiting(self):
        os.mkfifo(self.path)
        with self.assertRaises(InvalidPath):
            self.semaphore.try_acquire()
        os.unlink(self.path)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(self.path)
            with self.assertRaises(InvalidPath):
                self.semaphore.try_acquire()
            self.assertEqual(self.names(), ["job.lock"])

    def test_a_path_that_leads_elsewhere_or_nowhere_is_refused(self):
        for path in ["", "  ", "a\0b", "../job.lock", "a/../b", "a\\..\\b"]:
            with self.subTest(path), self.assertRaises(InvalidPath):
                Semaphore(path)
        for path in ["missing/job.lock", "n" * 230]:
            with self.subTest(path), self.assertRaises(InvalidPath):
                Semaphore(os.path.join(self.directory, path)).try_acquire()
        os.symlink("loop", os.path.join(self.directory, "loop"))
        with self.assertRaises(InvalidPath):
            Semaphore(os.path.join(self.directory, "loop")).try_acquire()

    def test_a_symbolic_link_is_followed_and_stays(self):
        os.mkdir(os.path.join(self.directory, "real"))
        os.symlink("real/other.lock", self.path)
        with self.semaphore.acquire():
            self.assertEqual(os.listdir(os.path.join(self.directory, "real")), ["other.lock"])
        self.assertTrue(os.path.islink(self.path))

    def test_a_guard_that_is_a_symbolic_link_is_refused_and_nothing_is_written_through_it(self):
        target = os.path.join(self.directory, "precious")
        os.symlink(target, self.path + ".guard")
        self.plant("pid=999999\ntimestamp=1\n")
        with self.assertRaises(InvalidPath):
            self.semaphore.try_acquire()
        self.assertFalse(os.path.exists(target))

    def test_a_tag_cannot_forge_a_field_and_is_cut(self):
        for tag in ["x\npid=1", "x\r\npid=1", "x\u2028pid=1", "x\u2029pid=1", "x\x85pid=1"]:
            with self.semaphore.acquire(tag=tag) as hold:
                self.assertEqual(hold.record.pid, os.getpid())
                self.assertEqual(hold.record.tag, re.sub(r"[\r\n\u2028\u2029\x85]", " ", tag))
        with self.semaphore.acquire(tag="\udcff" + "ü" * 5000) as hold:
            self.assertEqual(hold.record.tag, "\ufffd" + "ü" * 999)
            self.assertEqual(holdfast.parse_lock_file(Path(self.path).read_bytes()), hold.record)

    def test_records_are_read_as_the_format_says(self):
        whole = LockRecord(7, 8, "t")
        for data in [b"pid=7\r\ntimestamp=8\r\ntag=t\r\n", b"\xef\xbb\xbfpid=7\ntimestamp=8\ntag=t", b"  pid=7 \n\ntimestamp=8\nx\ntag=t\npid=9\n", b"pid=7\ntimestamp=8\ntag=t\n\0\0\0"]:
            self.assertEqual(holdfast.parse_lock_file(data), whole)
        for data in [b"pid = 7\ntimestamp=8", b"pid=7", b"pid=4294967296\ntimestamp=8", b"pid=7\ntimestamp=253402300800", b"PID=7\ntimestamp=8"]:
            self.assertIsNone(holdfast.parse_lock_file(data))


class RemovingByHand(SemaphoreCase):
    def test_force_removes_the_lock_of_a_living_holder_which_notices(self):
        hold = self.semaphore.acquire()
        self.assertTrue(Semaphore(self.path).force_release())
        self.assertFalse(Semaphore(self.path).force_release())
        self.assertFalse(hold.release())
        with self.assertRaises(LockLost):
            hold.check()

    @unittest.skipUnless(sys.platform.startswith("linux") or sys.platform == "darwin", "nothing is taken over here")
    def test_clean_removes_a_stale_lock_and_temp_files_of_dead_processes_only(self):
        child = self.hold_elsewhere()
        data = Path(self.path).read_bytes()
        temp = Path(self.path + "." + "0" * 26 + ".tmp")
        temp.write_bytes(data)
        fresh = Path(self.path + "." + "1" * 26 + ".tmp")
        fresh.write_bytes(b"")
        foreign = Path(self.path + ".mine.tmp")
        foreign.write_bytes(b"")
        self.assertFalse(self.semaphore.clean())
        child.kill()
        child.wait()
        self.assertTrue(self.semaphore.clean())
        self.assertEqual(self.names(), sorted([foreign.name, fresh.name, "job.lock.guard"]))
        old = time.time() - 4000
        os.utime(fresh, (old, old))
        self.assertTrue(self.semaphore.clean())
        self.assertFalse(fresh.exists())

    def test_the_guard_may_be_opened_by_those_who_may_write_in_its_directory(self):
        if sys.platform == "win32":
            self.skipTest("no guard here")
        for mode, expected in [(0o700, 0o600), (0o770, 0o660), (0o777, 0o666), (0o755, 0o600)]:
            directory = os.path.join(self.directory, oct(mode))
            os.mkdir(directory)
            os.chmod(directory, mode)
            path = os.path.join(directory, "job.lock")
            Path(path).write_text("pid=999999\ntimestamp=1\n")
            with Semaphore(path).acquire():
                self.assertEqual(os.stat(path + ".guard").st_mode & 0o777, expected)


class FileSystems(unittest.TestCase):
    TABLE = r"""
36 25 0:32 / / rw - ext4 /dev/sda rw
40 36 0:40 / /mnt/share rw shared:1 - nfs4 host:/x rw
41 40 0:41 / /mnt/share/local rw - tmpfs tmpfs rw
42 36 0:42 / /mnt/with\040space rw - cifs //host/x rw
43 36 0:43 / /mnt rw - fuse.thing x rw
"""

    def test_a_mount_that_hides_others_is_the_one_that_counts(self):
        self.assertEqual(holdfast._linux_type("/home", self.TABLE), "ext4")
        self.assertEqual(holdfast._linux_type("/mnt/share/a", self.TABLE), "fuse.thing")
        seen = self.TABLE.replace("43 36", "43 99 9:9 / /elsewhere\n#")
        self.assertEqual(holdfast._linux_type("/mnt/share/a", seen), "nfs4")
        self.assertEqual(holdfast._linux_type("/mnt/share/local/a", seen), "tmpfs")
        self.assertEqual(holdfast._linux_type("/mnt/with space/a", seen), "cifs")
        self.assertEqual(holdfast._linux_type("/mnt/shares", seen), "ext4")

    def test_on_a_mac_the_flag_of_the_kernel_must_agree(self):
        listed = "/dev/disk3s1 on / (apfs, sealed, local, read-only)\n//me@x/y on /Volumes/y (smbfs, nodev)\n/dev/disk9 on /Volumes/image (hfs, nodev)\n"
        kinds = [holdfast._mac_kind(path, listed) for path in ("/Users/x", "/Volumes/y/z", "/Volumes/image")]
        self.assertEqual(kinds, ["local", "network", "unknown"])

    def test_a_folder_that_its_user_vouches_for_is_local_unless_it_is_a_share(self):
        with tempfile.TemporaryDirectory() as directory, mock.patch.dict(os.environ, {"HOLDFAST_LOCAL": "/nowhere" + os.pathsep + directory}):
            inside = os.path.join(directory, "inside")
            os.mkdir(inside)
            for kind, expected in [("local", True), ("unknown", True), ("network", False)]:
                with mock.patch.object(holdfast, "_volume_kind", lambda real: kind):
                    self.assertEqual(holdfast._is_local(inside), expected)
            with mock.patch.object(holdfast, "_volume_kind", lambda real: "unknown"):
                self.assertFalse(holdfast._is_local("/"))


@unittest.skipUnless(sys.platform.startswith("linux") or sys.platform == "darwin", "nothing is taken over here")
class WhereNothingCanBeTrusted(SemaphoreCase):
    def test_on_a_share_a_stale_lock_is_not_taken_over(self):
        self.plant("pid=999999\ntimestamp=1\n")
        self.semaphore._resolve()
        self.semaphore._local = False
        self.assertIsNone(self.semaphore.try_acquire())
        with self.assertRaises(holdfast.UnsupportedDisk):
            self.semaphore.clean()
        self.assertTrue(self.semaphore.force_release())
        self.assertAcquires()

    def test_without_hard_links_the_lock_is_created_in_place(self):
        self.semaphore._can_link = False
        hold = self.semaphore.acquire()
        self.assertIsNone(Semaphore(self.path).try_acquire())
        self.assertTrue(hold.release())

    def test_an_acquisition_that_fails_after_the_link_gives_the_lock_up(self):
        # The guard appears between the link and the check, and this process may not open it.
        semaphore = self.semaphore
        calls = []

        def open_guard(path):
            calls.append(path)
            if len(calls) == 2:
                raise PermissionError(errno.EACCES, "no", path)
            return None

        semaphore._open_guard_if_any = open_guard
        with self.assertRaises(PermissionError):
            semaphore.try_acquire()
        self.assertNotIn("job.lock", self.names())


if __name__ == "__main__":
    unittest.main()
