"""Holdfast in Python: semaphore files and the hand-off, in one file without dependencies.

This file is all there is: install the package, or copy the file. It follows the pages docs/format/semaphore.md and
docs/format/handoff.md and works beside the Node library on the same folder. Python 3.9 or later.
"""

from __future__ import annotations

import errno
import os
import random
import re
import secrets
import socket
import stat
import subprocess
import sys
import threading
import time
import unicodedata
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, NoReturn, Optional, Set, Tuple, Type, TypeVar

__version__ = "0.2.0"

__all__ = [
    "HoldfastError",
    "InvalidPath",
    "LockLost",
    "LockRecord",
    "LockTimeout",
    "NotHeld",
    "Semaphore",
    "SemaphoreHold",
    "SemaphoreStatus",
    "UnsupportedDisk",
]

_T = TypeVar("_T")


# Errors. A failure of the disk stays an OSError; everything else has a class and the code that docs/errors.md lists.


class HoldfastError(Exception):
    """The base of all errors of this module. `code` is the code that the Node library uses for the same failure."""

    code = "IO_ERROR"

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.facts: Mapping[str, object] = facts


class InvalidPath(HoldfastError):
    """The path cannot be a lock, or the file there is not one. Nothing was changed."""

    code = "INVALID_PATH"


class LockTimeout(HoldfastError):
    """The lock was not granted in time. The facts name the holder, if it is known."""

    code = "LOCK_TIMEOUT"


class LockLost(HoldfastError):
    """The lock file was removed or replaced while the lock was held: another process may have worked meanwhile."""

    code = "LOCK_LOST"


class NotHeld(HoldfastError):
    """This process does not hold the lock."""

    code = "NOT_HELD"


class UnsupportedDisk(HoldfastError):
    """The file system lacks what the operation needs."""

    code = "UNSUPPORTED_DISK"


# Names and ids.

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"


def _random_name() -> str:
    """26 digits of base 32 with 128 random bits; the last two bits are zeros."""
    value = secrets.randbits(128) << 2
    return "".join(_DIGITS[value >> 5 * place & 31] for place in range(25, -1, -1))


# This machine and its processes.

_UNKNOWN = "unknown-"
# What nobody else can have: it proves nothing about a process.
_UNKNOWN_HERE = _UNKNOWN + str(uuid.uuid4())


def _read_text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _boot_id() -> str:
    """Linux and macOS name each start of the kernel. On Windows it is computed from the time of the start."""
    try:
        if sys.platform.startswith("linux"):
            text = _read_text("/proc/sys/kernel/random/boot_id").strip()
        elif sys.platform == "darwin":
            text = subprocess.run(["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, check=True, timeout=10).stdout.decode().strip()
        elif sys.platform == "win32":
            import ctypes

            ticks = ctypes.windll.kernel32.GetTickCount64
            ticks.restype = ctypes.c_ulonglong
            return "%s-%d" % (socket.gethostname(), round(time.time() - ticks() / 1000))
        else:
            return _UNKNOWN_HERE
    except (OSError, subprocess.SubprocessError):
        return _UNKNOWN_HERE
    # A sandbox may show any text there, and the same one after a restart.
    return text if re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text) else _UNKNOWN_HERE


def _process_space() -> str:
    """The namespaces in which a pid and a start have a meaning; empty where a kernel has only one."""
    if not sys.platform.startswith("linux"):
        return ""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        return _UNKNOWN_HERE
    with suppress(OSError):
        space += " " + os.readlink("/proc/self/ns/time")
    return space


class _ProcessEntry(NamedTuple):
    state: str
    threads: int
    start: str


def _process_entry(pid: int) -> Optional[_ProcessEntry]:
    """The line of a process in /proc; None if it is not visible."""
    try:
        # Without its own /proc, a pid namespace shows another table, in which each pid is another process.
        if os.readlink("/proc/self") != str(os.getpid()):
            return None
        text = _read_text("/proc/%d/stat" % pid)
    except OSError:
        return None
    # A process chooses its own name, so the fields count from the last parenthesis: number 3 is the first.
    fields = text[text.rfind(")") + 2 :].split(" ")
    return _ProcessEntry(fields[0], int(fields[17]), fields[19]) if len(fields) > 19 else None


def _is_running(pid: int, start: str) -> bool:
    """False only if no process of this process table has this pid and this start."""
    if not 0 < pid < 2**31:
        return False
    if sys.platform == "win32":
        return _is_running_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # It exists and belongs to another user.
    entry = _process_entry(pid)
    if entry is None:
        return True
    # A zombie has run its last instruction, unless one of its threads is still in a call to the disk.
    if entry.state in ("Z", "X") and entry.threads <= 1:
        return False
    return start == "" or entry.start == start


def _is_running_on_windows(pid: int) -> bool:
    """Written from the documentation: `os.kill` would end the process there."""
    import ctypes

    kernel: Any = getattr(ctypes, "windll").kernel32
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = kernel.OpenProcess(0x00100000, False, pid)  # SYNCHRONIZE
    if not handle:
        return bool(kernel.GetLastError() != 87)  # ERROR_INVALID_PARAMETER: there is no such process.
    try:
        return bool(kernel.WaitForSingleObject(ctypes.c_void_p(handle), 0) != 0)  # 0: it has ended.
    finally:
        kernel.CloseHandle(ctypes.c_void_p(handle))


class _Host(NamedTuple):
    """This process as a lock record names it."""

    name: str
    pid: int
    boot: str
    space: str
    start: str


_boot: Optional[str] = None


def _this_host() -> _Host:
    # Asked anew each time: after a fork the process is another one.
    global _boot
    if _boot is None:
        _boot = _boot_id()
    entry = _process_entry(os.getpid())
    return _Host(socket.gethostname(), os.getpid(), _boot, _process_space(), entry.start if entry else "")


# File systems.

# A file system that is in no list may be anything: it does not count as local.
_LOCAL_TYPES: FrozenSet[str] = frozenset(
    "ext2 ext3 ext4 xfs btrfs bcachefs zfs f2fs jfs reiserfs nilfs2 ufs apfs hfs hfsplus ntfs ntfs3 vfat msdos exfat tmpfs ramfs overlay".split()
)


def _is_local(directory: str) -> bool:
    """True if the directory is known to be on a disk of this machine."""
    real = os.path.realpath(directory)
    try:
        if sys.platform.startswith("linux"):
            return _linux_type(real, _read_text("/proc/self/mountinfo")) in _LOCAL_TYPES
        if sys.platform == "darwin":
            listed = subprocess.run(["/sbin/mount"], capture_output=True, check=True, timeout=10).stdout.decode(errors="replace")
            return _is_local_on_mac(real, listed)
    except (OSError, subprocess.SubprocessError):
        pass
    return False


def _contains(mount_point: str, path: str) -> bool:
    return mount_point == "/" or path == mount_point or path.startswith(mount_point + "/")


def _linux_type(real: str, mountinfo: str) -> str:
    """Descends from mount to mount as the kernel does: a mount may hide an earlier one below it."""
    above: List[Tuple[str, str, str, str]] = []  # id, parent, mount point, type
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, types = before.split(" "), after.split(" ")
        if len(fields) < 5:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
        # The table has bytes, and an escaped byte is one of a character of UTF-8.
        if _contains(point, real):
            above.append((fields[0], fields[1], point, types[0]))
    ids = {each[0] for each in above}
    inside = [each for each in above if each[0] == each[1] or each[1] not in ids]
    found = ""
    entered: Set[str] = set()
    while inside:
        nearest = min(inside, key=lambda each: len(each[2]))
        if nearest[0] in entered:
            break
        entered.add(nearest[0])
        found = nearest[3]
        inside = [each for each in above if each[1] == nearest[0] and each[0] != nearest[0]]
    return found


def _is_local_on_mac(real: str, listed: str) -> bool:
    """Not run on a Mac. The kernel's own flag must agree: a disk image has a local type without it."""
    found: Tuple[int, bool] = (0, False)
    for line in listed.splitlines():
        match = re.search(r" on (/.*) \(([^()]*)\)$", line)
        if match and _contains(match[1], real) and len(match[1]) >= found[0]:
            kind, *options = match[2].split(", ")
            found = (len(match[1]), kind in _LOCAL_TYPES and "local" in options)
    return found[1]


def _write_new(path: str, data: bytes, *, sync: bool = True, mode: int = 0o666) -> None:
    """Creates a file. One that could not be written whole is removed again."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise


def _unlink_quietly(path: str) -> None:
    with suppress(OSError):
        _unlink(path)


def _unlink(path: str) -> None:
    """On Windows a file cannot be removed while another program reads it."""
    for left in range(40 if sys.platform == "win32" else 0, -1, -1):
        try:
            os.unlink(path)
            return
        except PermissionError:
            if left == 0:
                raise
            time.sleep(0.025)


_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


# The record of a lock file.


@dataclass(frozen=True)
class LockRecord:
    """What a lock file says about its holder. Programs other than Holdfast write only the first three."""

    pid: int
    #: When the lock was acquired, in Unix seconds.
    timestamp: int
    tag: Optional[str] = None
    #: Proves who acquired the lock; new for each acquisition.
    token: Optional[str] = None
    host: Optional[str] = None
    boot: Optional[str] = None
    space: Optional[str] = None
    start: Optional[str] = None
    volume: Optional[str] = None


_EXTRA_KEYS = ("token", "host", "boot", "space", "start", "volume")
_RECORD_KEYS = ("pid", "timestamp", "tag", *_EXTRA_KEYS)
_LOCK_BYTES_MAX = 65_536
_TAG_LENGTH_MAX = 1_000
_EXTRA_LENGTH_MAX = 200
_PID_MAX = 2**32 - 1
_TIMESTAMP_MAX = 253_402_300_799


def _clean(text: Optional[str], length_max: int) -> Optional[str]:
    """One line without control characters; None if nothing is left."""
    if text is None:
        return None
    kept: List[str] = []
    for character in text[:length_max]:
        category = unicodedata.category(character)
        kept.append(" " if category in ("Cc", "Zl", "Zp") else "\ufffd" if category == "Cs" else character)
    return "".join(kept).strip() or None


def _lines(text: str) -> List[str]:
    text = text.rstrip("\0")
    return [line.strip() for line in re.split("\r?\n", text[1:] if text.startswith("\ufeff") else text)]


def _whole_number(text: Optional[str], least: int, most: int) -> Optional[int]:
    if text is None or not re.fullmatch("[0-9]{1,15}", text):
        return None
    return int(text) if least <= int(text) <= most else None


def parse_lock_file(data: bytes) -> Optional[LockRecord]:
    """Reads the record of a lock file of any program. None if `pid` or `timestamp` is missing or malformed."""
    if len(data) > _LOCK_BYTES_MAX:
        return None
    fields: Dict[str, str] = {}
    for line in _lines(data.decode("utf-8", "replace")):
        key, sign, value = line.partition("=")
        if sign and key:
            fields.setdefault(key, value)
    pid = _whole_number(fields.get("pid"), 1, _PID_MAX)
    timestamp = _whole_number(fields.get("timestamp"), 0, _TIMESTAMP_MAX)
    if pid is None or timestamp is None:
        return None
    extra = {key: _clean(fields.get(key), _EXTRA_LENGTH_MAX) for key in _EXTRA_KEYS}
    return LockRecord(pid, timestamp, _clean(fields.get("tag"), _TAG_LENGTH_MAX), **extra)


def format_lock_file(record: LockRecord) -> bytes:
    """The bytes of a lock file with this record."""
    if not 1 <= record.pid <= _PID_MAX or not 0 <= record.timestamp <= _TIMESTAMP_MAX:
        raise ValueError("pid or timestamp is out of range")
    lines = ["pid=%d" % record.pid, "timestamp=%d" % record.timestamp]
    for key in _RECORD_KEYS[2:]:
        value = _clean(getattr(record, key), _TAG_LENGTH_MAX if key == "tag" else _EXTRA_LENGTH_MAX)
        if value is not None:
            lines.append("%s=%s" % (key, value))
    return ("\n".join(lines) + "\n").encode()


def _contents_of(data: bytes) -> str:
    """Classifies a file without a readable record: torn, malformed, unfinished, or data, which no lock begins like."""
    *whole, cut = _lines(data.decode("utf-8", "replace"))
    whole = [line for line in whole if line]
    # Only the last line can be cut off.
    if not all(map(_is_field, whole)) or not _is_field(cut if "=" in cut else (cut or "_") + "="):
        return "data"
    lines = whole + [cut] if cut else whole
    if all(any(line.startswith(key + "=") and len(line) > len(key) + 1 for line in lines) for key in ("pid", "timestamp")):
        return "malformed"
    if not lines:
        return "torn"
    begins = _may_begin(lines[0], ("pid", "timestamp")) and all(_may_begin(line, _RECORD_KEYS) for line in lines[1:])
    return "torn" if begins else "unfinished"


def _is_field(line: str) -> bool:
    key, sign, value = line.partition("=")
    is_key = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}", key) is not None
    return is_key and bool(sign) and not any(unicodedata.category(each) == "Cc" and each != "\t" for each in value)


def _may_begin(line: str, keys: Tuple[str, ...]) -> bool:
    return any(line.startswith(key + "=") if "=" in line else key.startswith(line) for key in keys)


# What is found under the name of a lock.


@dataclass(frozen=True)
class _Observation:
    """The state of a name at one moment. Two are of the same lock if and only if their signatures are equal."""

    signature: bytes
    is_directory: bool = False
    record: Optional[LockRecord] = None
    #: torn, malformed, unfinished or data; empty if there is a record, or nothing is known.
    contents: str = ""
    is_hidden: bool = False
    #: A directory without a record.
    is_bare: bool = False


def _stamp(found: os.stat_result) -> bytes:
    return b"%d:%d:%d:%d" % (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def _observe(path: str) -> Optional[_Observation]:
    """None if the name is free."""
    for _ in range(3):
        try:
            return _observe_once(path)
        except OSError as error:
            # The file that was opened is gone. That does not prove that the name is free.
            if error.errno != getattr(errno, "ESTALE", None):
                raise
    return _Observation(b"changing", is_hidden=True)


def _observe_once(path: str) -> Optional[_Observation]:
    try:
        found = _observe_file(path, b"file:")
        return _observe_directory(path) if found is None else found
    except FileNotFoundError:
        return None
    except PermissionError:
        # Windows refuses to open a directory; it also refuses a file that is being removed.
        if os.path.isdir(path):
            return _observe_directory(path)
        return _Observation(b"hidden", is_hidden=True) if os.path.lexists(path) else None
    except OSError as error:
        if error.errno != errno.ENXIO:  # A socket.
            raise
        return _Observation(b"other", contents="data")


def _observe_file(path: str, prefix: bytes) -> Optional[_Observation]:
    """None if it is a directory."""
    # Not blocking: to open a pipe would wait for a writer.
    descriptor = os.open(path, _READ_FLAGS)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            return None
        if not stat.S_ISREG(found.st_mode):
            return _Observation(b"other", contents="data")
        data = b""
        while len(data) <= _LOCK_BYTES_MAX:
            more = os.read(descriptor, _LOCK_BYTES_MAX + 1 - len(data))
            if not more:
                break
            data += more
    finally:
        os.close(descriptor)
    if len(data) > _LOCK_BYTES_MAX:
        return _Observation(b"large", contents="data")
    record = parse_lock_file(data)
    if record is not None and record.token is not None:
        return _Observation(prefix + data, record=record)
    # Two locks of other programs may have the same bytes.
    signature = prefix + data + b"@" + _stamp(found)
    return _Observation(signature, record=record, contents="" if record else _contents_of(data))


def _observe_directory(path: str) -> Optional[_Observation]:
    try:
        inside = _observe_file(os.path.join(path, "owner"), b"directory:")
        if inside is None:
            found = _Observation(b"large", is_directory=True, contents="data")
        else:
            found = replace(inside, is_directory=True)
    except (FileNotFoundError, NotADirectoryError):
        found = _Observation(b"bare@" + _stamp(os.stat(path)), is_directory=True, is_bare=True)
    except PermissionError:
        return _Observation(b"hidden", is_directory=True, is_hidden=True)
    if found.record is None:
        with suppress(OSError):
            if any(name != "owner" for name in os.listdir(path)):
                return replace(found, contents="data", is_bare=False)
    return found


# The guard: an OS lock on a file beside the lock.

_GUARD_WAIT_S = 10.0
_LOCKED_BYTE = 2**40

if sys.platform != "win32":
    import fcntl

    def _lock_call(descriptor: int, kind: int) -> None:
        if sys.platform.startswith("linux"):
            import struct

            # A lock of the open file, not of the process: threads exclude each other too. `struct flock` in C.
            # The numbers are those of <fcntl.h>, the same on every architecture.
            fcntl.fcntl(descriptor, 37, struct.pack("@hhqqi4x", kind, os.SEEK_SET, _LOCKED_BYTE, 1, 0))
        else:
            fcntl.flock(descriptor, fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _try_lock(descriptor: int) -> bool:
        try:
            _lock_call(descriptor, fcntl.F_WRLCK)
            return True
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK):
                return False
            raise

    def _unlock(descriptor: int) -> None:
        _lock_call(descriptor, fcntl.F_UNLCK)

else:
    # No file system there is known to be local, so nothing is taken over and no guard is opened.
    def _try_lock(descriptor: int) -> bool:
        raise NotImplementedError

    def _unlock(descriptor: int) -> None:
        raise NotImplementedError


_guards: Set[int] = set()


def _close_guards_after_fork() -> None:
    # The lock belongs to the open file, which a forked child shares.
    for descriptor in _guards:
        with suppress(OSError):
            os.close(descriptor)
    _guards.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_guards_after_fork)


class _GuardFile:
    """The open guard. `with` closes it, and releases it if it is locked."""

    def __init__(self, lock_path: str) -> None:
        self._lock_path = lock_path
        self._path = lock_path + ".guard"
        self._descriptor = self._open()
        self._is_locked = False

    def __enter__(self) -> _GuardFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def try_lock(self) -> bool:
        while _try_lock(self._descriptor):
            self._is_locked = True
            try:
                named = os.stat(self._path, follow_symlinks=False)
            except FileNotFoundError:
                named = None
            own = os.fstat(self._descriptor)
            if named is not None and (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino):
                return True
            # It was deleted meanwhile: processes that lock two successive files do not exclude each other.
            self._close()
            self._descriptor = self._open()
        return False

    def lock(self) -> None:
        deadline = time.monotonic() + _GUARD_WAIT_S
        while not self.try_lock():
            if time.monotonic() >= deadline:
                message = "%s has been held by another process for %d s. That process was about to remove the lock and seems to be stopped. Wake or end it, then try again."
                raise LockTimeout(message % (self._path, _GUARD_WAIT_S), path=self._path)
            # Jitter: waiters that began together drift apart.
            time.sleep(random.uniform(0.002, 0.01))

    def _close(self) -> None:
        try:
            if self._is_locked:
                with suppress(OSError):
                    _unlock(self._descriptor)
        finally:
            self._is_locked = False
            _guards.discard(self._descriptor)
            os.close(self._descriptor)

    def _open(self) -> int:
        while True:
            try:
                descriptor = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW)
                _guards.add(descriptor)
                return descriptor
            except FileNotFoundError:
                self._make()
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.EMLINK):
                    raise InvalidPath("%s is a symbolic link, but the guard of a lock must be a file." % self._path, path=self._path) from error
                raise

    def _make(self) -> None:
        """Creates it with its rights in one step: another user that opened it half made would be refused."""
        temp = _temp_path(self._lock_path)
        _write_new(temp, b"", sync=False, mode=0o600)
        try:
            _fit_directory(temp, os.path.dirname(self._path))
            os.link(temp, self._path)
        except FileExistsError:
            pass
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            with suppress(FileExistsError):
                _write_new(self._path, b"", sync=False, mode=0o600)
                _fit_directory(self._path, os.path.dirname(self._path))
        finally:
            _unlink_quietly(temp)


def _fit_directory(path: str, directory: str) -> None:
    """Gives a new file to those who may write in its directory."""
    above, own = os.stat(directory), os.stat(path)

    def is_done(change: Callable[[], None]) -> bool:
        try:
            change()
            return True
        except OSError as error:
            if error.errno not in (errno.EINVAL, *_NO_LINKS):
                raise
            return False

    is_given = (own.st_uid, own.st_gid) == (above.st_uid, above.st_gid) or is_done(lambda: os.chown(path, above.st_uid, above.st_gid))
    has_group = is_given or own.st_gid == above.st_gid or is_done(lambda: os.chown(path, -1, above.st_gid))
    others = 0o006 if above.st_mode & 0o002 else 0
    # A group other than the directory's has the rights of "others" there.
    group = 0o060 if above.st_mode & (0o020 if has_group else 0o002) else 0
    is_done(lambda: os.chmod(path, 0o600 | group | others))


def _temp_path(lock_path: str) -> str:
    return "%s.%s.tmp" % (lock_path, _random_name())


# The semaphore.

_NAME_BYTES_MAX = 255 - 32
_DEFAULT_STALE_S = 3600.0
_TORN_S = 10.0
_GAP_S = _TORN_S / 4
_START_DOUBT_S = 2.0
_ORPHAN_S = 3600.0
_TICK_S = 0.01


@dataclass(frozen=True)
class SemaphoreStatus:
    """The state of a semaphore. `why` says for people why it counts as held or stale."""

    locked: bool
    #: True if the lock may be taken over.
    stale: bool
    #: True if this semaphore object holds it.
    mine: bool
    why: str
    record: Optional[LockRecord] = None


@dataclass
class _Claim:
    """One acquisition: our record under the name of the lock."""

    record: LockRecord
    data: bytes
    monotonic: float
    wall: float
    #: The link was requested, and nothing shows that it failed.
    may_exist: bool = False
    #: A taker may have moved it and may put it back later: it is removed only under the guard.
    is_unsettled: bool = False


@dataclass
class _Watched:
    signature: bytes
    unchanged: float
    looked_at: float


class Semaphore:
    """A lock file at any path that every program can honour, docs/format/semaphore.md.

    `stale`: seconds after which the lock of an unknown holder may be taken over; None: never. All programs that use a
    lock must agree on it. `retry`: seconds between two attempts of a waiter. `fsync`: sync the lock file. `mode`: 0o600,
    or 0o644 if programs of other users must judge the lock.

    One object may be used by several threads; each acquisition excludes all others, in this process too.
    """

    def __init__(self, path: "str | os.PathLike[str]", *, stale: Optional[float] = _DEFAULT_STALE_S, retry: float = 0.1, fsync: bool = True, mode: int = 0o600) -> None:
        text = os.fspath(path)
        _check_path(text)
        if stale is not None and not stale >= 0:
            raise ValueError("stale must be a number of seconds, or None")
        if not retry >= 0.001:
            raise ValueError("retry must be at least 0.001 seconds")
        if mode not in (0o600, 0o644):
            raise ValueError("mode must be 0o600 or 0o644")
        self.path = os.path.abspath(text)
        self._stale = None if stale == float("inf") else stale
        self._retry = retry
        self._fsync = fsync
        self._mode = mode
        self._real: Optional[str] = None
        self._local = False
        self._can_link = True
        self._watched: Optional[_Watched] = None
        self._pid = 0
        self._turn = threading.RLock()
        self._tokens: Set[str] = set()

    @property
    def _mutex(self) -> Any:
        """The turn of this object's threads. A forked child begins without the locks and holds of its parent."""
        if self._pid != os.getpid():
            self._pid, self._turn, self._tokens, self._watched = os.getpid(), threading.RLock(), set(), None
        return self._turn

    def try_acquire(self, tag: Optional[str] = None) -> Optional[SemaphoreHold]:
        """Acquires the lock if it is free or stale; None if another holds it. Raises InvalidPath for what is no lock."""
        with self._mutex:
            return self._attempt(tag)[0]

    def acquire(self, timeout: Optional[float] = None, tag: Optional[str] = None) -> SemaphoreHold:
        """Acquires the lock, and waits for at most `timeout` seconds (default: without end). Raises LockTimeout.

        Use it as `with semaphore.acquire(timeout=10): ...`.
        """
        began = time.monotonic()
        while True:
            with self._mutex:
                hold, why, record = self._attempt(tag)
            if hold is not None:
                return hold
            left = float("inf") if timeout is None else timeout - (time.monotonic() - began)
            if left <= 0:
                holder = "" if record is None else " by process %d" % record.pid
                message = "%s was not free for %.1f s: it is held%s; %s." % (self.path, time.monotonic() - began, holder, why)
                raise LockTimeout(message, path=self.path, record=record, why=why)
            time.sleep(min(left, self._retry * random.uniform(0.5, 1.5)))

    def status(self) -> SemaphoreStatus:
        """The state of the lock now. Raises InvalidPath if the file is not a lock."""
        with self._mutex:
            path = self._resolve()
            found = self._look(path)
            if found is None:
                return SemaphoreStatus(False, False, False, "it is free")
            is_stale, why = self._judge(path, found)
            mine = found.record is not None and found.record.token in self._tokens
            return SemaphoreStatus(True, is_stale, mine, why, found.record)

    def force_release(self) -> bool:
        """Removes the lock of any holder, because the caller insists. True if there was one."""
        with self._mutex:
            path = self._resolve()
            self._must_be_lock(path, self._look(path))
            for _ in range(3):
                with self._guarded(path) as is_guarded:
                    found = self._look(path)
                    self._must_be_lock(path, found)
                    if found is None:
                        return False
                    if self._remove(path, found, is_guarded):
                        return True
            return False

    def clean(self) -> bool:
        """Removes a stale lock and temp files that dead processes left. True if it removed any.

        Raises UnsupportedDisk if a stale lock cannot be removed safely here.
        """
        with self._mutex:
            path = self._resolve()
            removed = False
            found = self._look(path)
            if found is not None and self._judge(path, found)[0]:
                if not self._local:
                    raise UnsupportedDisk("%s is stale, but is not known to be on a local disk, so it cannot be removed safely. If you know that nobody holds it, use force_release." % path, path=path)
                with _GuardFile(path) as guard:
                    guard.lock()
                    removed = self._is_still_stale(path, found) and self._remove(path, found, True)
            return self._sweep(path) or removed

    def _resolve(self) -> str:
        """Where the path leads. Its directory must exist."""
        if self._real is None:
            real = os.path.realpath(self.path)
            name = os.path.basename(real)
            if os.path.islink(real):
                raise _invalid(self.path, "its symbolic links lead in a circle")
            if not name or len(os.fsencode(name)) > _NAME_BYTES_MAX:
                raise _invalid(self.path, "its name is empty or has over %d bytes" % _NAME_BYTES_MAX)
            if not os.path.isdir(os.path.dirname(real)):
                raise _invalid(self.path, "its directory is not there; make it, or mount what it lies on")
            self._local = _is_local(os.path.dirname(real))
            self._real = real
        return self._real

    def _look(self, path: str) -> Optional[_Observation]:
        found = _observe(path)
        # A check that finds the name free, or another file, ends the watch.
        if found is None or (self._watched is not None and found.signature != self._watched.signature):
            self._watched = None
        return found

    def _must_be_lock(self, path: str, found: Optional[_Observation]) -> None:
        if found is not None and found.contents in ("data", "unfinished"):
            raise _not_a_lock(path)

    # Which locks are stale.

    def _judge(self, path: str, found: _Observation) -> Tuple[bool, str]:
        if found.contents == "data":
            raise _not_a_lock(path)
        if found.is_hidden:
            return False, "this user may not read it"
        if found.is_bare:
            # Only a semaphore of the directory form takes it over.
            return False, "it is a directory without a record"
        if found.contents == "malformed":
            if self._stale is None:
                return False, "locks of other programs never go stale"
            unchanged = self._unchanged(path, found)
            return unchanged > self._stale, "its record cannot be read, and it has not changed for %d s" % unchanged
        if found.record is None:
            unchanged = self._unchanged(path, found)
            if unchanged < _TORN_S:
                return False, "it has no record, but may be about to get one"
            if found.contents != "torn":
                raise _not_a_lock(path)
            return True, "it has had no record for %d s" % unchanged
        is_running = self._is_holder_running(found.record)
        if is_running is not None:
            return not is_running, "its holder, process %d, is %s" % (found.record.pid, "alive" if is_running else "dead")
        if self._is_foreign_holder_running(found.record):
            return False, "process %d is alive, and began before it" % found.record.pid
        return self._judge_by_age(path, found, found.record.timestamp)

    def _judge_by_age(self, path: str, found: _Observation, timestamp: int) -> Tuple[bool, str]:
        if self._stale is None:
            return False, "locks of other programs and machines never go stale"
        age = time.time() - timestamp
        if age < 0:
            # Some clock is wrong, and the lock could block for years.
            age = self._unchanged(path, found)
            return age > self._stale, "its time is in the future, and it has not changed for %d s" % age
        return age > self._stale, "it is %d s old" % age

    def _is_holder_running(self, record: LockRecord) -> Optional[bool]:
        """None if this machine cannot tell."""
        here = _this_host()
        boot, space = record.boot or "", record.space or ""
        if record.token is None or space != here.space or boot.startswith(_UNKNOWN) or here.boot.startswith(_UNKNOWN):
            return None
        is_running = _is_running(record.pid, record.start or "")
        if boot == here.boot:
            return is_running
        # Its kernel is this one, under another id, or is gone.
        return False if not is_running and record.volume == "local" and self._local else None

    def _is_foreign_holder_running(self, record: LockRecord) -> bool:
        if record.token is not None or not self._local:
            return False
        entry, own = _process_entry(record.pid), _process_entry(os.getpid())
        if entry is None or own is None or not _is_running(record.pid, entry.start):
            return False
        # Counted from the start of this process: a container may show a made-up time of boot.
        started = _started_at() + (int(entry.start) - int(own.start)) * _TICK_S
        return started <= record.timestamp + _START_DOUBT_S

    def _unchanged(self, path: str, found: _Observation) -> float:
        """For how long nothing has changed: by the stamps of the files at first, then as watched by this process."""
        now = time.monotonic()
        watched = self._watched if self._watched is not None and self._watched.signature == found.signature else None
        gap = float("inf") if watched is None else now - watched.looked_at
        unchanged = (watched.unchanged if watched else 0.0) + (gap if gap <= _GAP_S else 0.0)
        if gap > _GAP_S:
            unchanged = max(unchanged, _file_age(path, path))
        self._watched = _Watched(found.signature, unchanged, now)
        return unchanged

    # How a lock changes hands.

    def _attempt(self, tag: Optional[str]) -> Tuple[Optional[SemaphoreHold], str, Optional[LockRecord]]:
        path = self._resolve()
        found: Optional[_Observation] = None
        for _ in range(3):
            found = self._look(path)
            if found is None:
                claim = self._win(path, tag)
            else:
                is_stale, why = self._judge(path, found)
                if not is_stale:
                    return None, why, found.record
                if not self._local:
                    return None, "%s, but on this file system nothing can be taken over safely" % why, found.record
                claim = self._take_over(path, found, tag)
            if claim is not None:
                return self._hold(path, claim), "", None
        return None, "others were faster", None if found is None else found.record

    def _hold(self, path: str, claim: _Claim) -> SemaphoreHold:
        self._tokens.add(claim.record.token or "")
        return SemaphoreHold(self, path, claim)

    def _new_claim(self, tag: Optional[str]) -> _Claim:
        here = _this_host()
        monotonic, wall = time.monotonic(), time.time()
        volume = "local" if self._local else None
        record = LockRecord(here.pid, max(0, int(wall)), tag, _random_name(), here.name, here.boot, here.space, here.start, volume)
        data = format_lock_file(record)
        return _Claim(parse_lock_file(data) or record, data, monotonic, wall)

    def _win(self, path: str, tag: Optional[str]) -> Optional[_Claim]:
        """Takes a free name. None if another was faster."""
        claim = self._new_claim(tag)
        if not self._can_link:
            return claim if self._create_in_place(path, claim) else None
        # Opened before the lock is taken: a user who may not open the guard is refused now.
        guard = self._open_guard_if_any(path)
        try:
            with _Staged(self, path, claim) as staged:
                if not staged.link():
                    return None
            # A taker may have moved another lock away by mistake, and has to put it back. If there is no guard even now,
            # no taker is active: the guard is created before it checks.
            guard = guard or self._open_guard_if_any(path)
            if guard is not None:
                guard.lock()
            return claim if guard is None or self._is_own(claim, self._look(path)) else None
        except BaseException:
            self._abandon(path, claim)
            raise
        finally:
            if guard is not None:
                guard.__exit__()

    def _open_guard_if_any(self, path: str) -> Optional[_GuardFile]:
        return _GuardFile(path) if self._local and os.path.lexists(path + ".guard") else None

    def _create_in_place(self, path: str, claim: _Claim) -> bool:
        """Where there are no hard links. Takes two steps: in between it looks like the remains of a crash."""
        if self._local:
            with _GuardFile(path) as guard:
                return guard.try_lock() and self._create_now(path, claim)
        return self._create_now(path, claim)

    def _create_now(self, path: str, claim: _Claim) -> bool:
        try:
            _write_new(path, claim.data, sync=self._fsync, mode=self._mode)
            return True
        except FileExistsError:
            return False

    def _take_over(self, path: str, found: _Observation, tag: Optional[str]) -> Optional[_Claim]:
        """Replaces a stale lock. None if something changed, or another process is at it."""
        claim = self._new_claim(tag)
        try:
            # Written and synced before the guard is taken, so that nothing slow happens after the last check.
            with _Staged(self, path, claim) as staged, _GuardFile(path) as guard:
                if not guard.try_lock() or not self._is_still_stale(path, found):
                    return None
                return claim if self._move_away(path, found, staged.link) else None
        except BaseException:
            self._abandon(path, claim)
            raise

    def _abandon(self, path: str, claim: _Claim) -> None:
        """No caller will hold it."""
        if claim.may_exist:
            self._give_up_later(path, replace(claim, is_unsettled=True))

    def _is_still_stale(self, path: str, found: _Observation) -> bool:
        if not self._judge(path, found)[0]:
            return False
        now = self._look(path)
        return now is not None and now.signature == found.signature

    def _move_away(self, path: str, found: _Observation, then: Callable[[], bool]) -> bool:
        """Moves the lock to a temp name, checks it there, and runs `then`. Another lock is put back. Under the guard."""
        away = _temp_path(path)
        try:
            os.rename(path, away)
        except FileNotFoundError:
            return False
        try:
            moved = _observe(away)
        except BaseException:
            self._put_back(away, path, None)
            raise
        if moved is None:
            return False
        if moved.signature != found.signature:
            self._put_back(away, path, moved)
            return False
        try:
            return then()
        finally:
            _remove_moved(away, moved.is_directory)

    def _put_back(self, away: str, path: str, moved: Optional[_Observation]) -> None:
        """By a link, which overwrites nothing. A lock of Holdfast that was made meanwhile does not count yet."""
        for _ in range(5):
            failure = 0
            try:
                os.link(away, path)
                break
            except FileNotFoundError:
                return
            except OSError as error:
                failure = error.errno or 0
            now = _observe(path)
            if now is None:
                if failure in _NO_LINKS:
                    # A directory, or no hard links.
                    os.rename(away, path)
                    return
            elif moved is not None and now.signature == moved.signature:
                break
            elif now.record is not None and now.record.token is not None:
                _unlink_quietly(path)
            else:
                break
        _remove_moved(away, moved is not None and moved.is_directory)

    def _is_own(self, claim: _Claim, found: Optional[_Observation]) -> bool:
        if found is not None and found.is_hidden:
            raise PermissionError(errno.EACCES, "the lock cannot be read any more", self.path)
        return found is not None and not found.is_directory and found.signature == b"file:" + claim.data

    def _give_up(self, path: str, claim: _Claim) -> bool:
        """False if the lock was lost before."""
        with self._mutex:
            limit = min(self._stale if self._stale is not None else _DEFAULT_STALE_S, _DEFAULT_STALE_S) / 2
            age = max(time.monotonic() - claim.monotonic, time.time() - claim.wall)
            if not claim.is_unsettled and age < limit:
                return self._remove_own(path, claim, False)
            # An old lock may be taken over between the check and the removal.
            with self._guarded(path) as is_guarded:
                return self._remove_own(path, claim, is_guarded)

    def _give_up_later(self, path: str, claim: _Claim) -> None:
        """Until it is gone: as long as this process lives, no other may take the lock over."""
        self._tokens.discard(claim.record.token or "")
        try:
            self._give_up(path, claim)
        except (OSError, HoldfastError):
            threading.Thread(target=self._keep_giving_up, args=(path, claim, os.getpid()), daemon=True).start()

    def _keep_giving_up(self, path: str, claim: _Claim, pid: int) -> None:
        pause = 0.1
        while os.getpid() == pid:
            time.sleep(pause)
            pause = min(2 * pause, 5.0)
            try:
                self._give_up(path, claim)
                return
            except (OSError, HoldfastError):
                continue

    def _remove_own(self, path: str, claim: _Claim, is_guarded: bool) -> bool:
        found = self._look(path)
        if found is None or not self._is_own(claim, found):
            return False
        return self._remove(path, found, is_guarded)

    def _remove(self, path: str, found: _Observation, is_guarded: bool) -> bool:
        if is_guarded or found.is_directory:
            return self._move_away(path, found, lambda: True)
        with suppress(FileNotFoundError):
            _unlink(path)
        return True

    def _guarded(self, path: str) -> _Guarded:
        return _Guarded(path, self._local)

    def _sweep(self, path: str) -> bool:
        directory, prefix = os.path.dirname(path), os.path.basename(path) + "."
        removed = False
        for name in os.listdir(directory):
            if not (name.startswith(prefix) and re.fullmatch(r"[0-9a-z]{26}\.tmp", name[len(prefix) :])):
                continue
            temp = os.path.join(directory, name)
            found = _observe(temp)
            if found is None:
                continue
            is_running = None if found.record is None else self._is_holder_running(found.record)
            if is_running is False or (is_running is None and _file_age(temp, path) > _ORPHAN_S):
                removed = _remove_moved(temp, found.is_directory) or removed
        return removed


class SemaphoreHold:
    """A held semaphore. `with` releases it, and raises LockLost if it was lost before the work ended.

    A forked child does not hold it: there `release` does nothing.
    """

    def __init__(self, semaphore: Semaphore, path: str, claim: _Claim) -> None:
        self._semaphore = semaphore
        self._path = path
        self._claim = claim
        self._pid = os.getpid()
        self._is_over = False
        self._was_lost = False
        #: The record in the lock file.
        self.record: LockRecord = claim.record

    @property
    def token(self) -> str:
        """Proves this acquisition; never used again."""
        return self._claim.record.token or ""

    def check(self) -> None:
        """Raises LockLost if the lock file is gone or is another's. Long work calls it before each step that counts."""
        if self._pid != os.getpid() or (self._is_over and not self._was_lost):
            raise NotHeld("%s is not held by this process" % self._path, path=self._path)
        if not self._was_lost and not self._semaphore._is_own(self._claim, _observe(self._path)):
            self._end(True)
        if self._was_lost:
            raise LockLost("%s is no longer held: its lock file was removed or replaced. Another process may have worked at the same time; check what was done since." % self._path, path=self._path)

    def release(self) -> bool:
        """Releases the lock. False if it was lost before. May be called again, also after a failure."""
        if self._pid != os.getpid() or self._is_over:
            return not self._was_lost
        self._end(not self._semaphore._give_up(self._path, self._claim))
        return not self._was_lost

    def _end(self, was_lost: bool) -> None:
        self._is_over, self._was_lost = True, was_lost
        self._semaphore._tokens.discard(self.token)

    def __enter__(self) -> SemaphoreHold:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        if self._pid != os.getpid():
            return
        try:
            was_held = self.release()
        except (OSError, HoldfastError):
            self._semaphore._give_up_later(self._path, self._claim)
            self._end(False)
            if error is None:
                raise
            return
        if not was_held and error is None:
            self.check()


class _Staged:
    """The lock file under a temp name, synced. A file that is created first and filled later would be seen empty."""

    def __init__(self, semaphore: Semaphore, path: str, claim: _Claim) -> None:
        self._semaphore = semaphore
        self._path = path
        self._claim = claim
        self._temp = _temp_path(path)
        try:
            _write_new(self._temp, claim.data, sync=semaphore._fsync, mode=semaphore._mode)
        except FileNotFoundError:
            semaphore._real = None
            raise _invalid(path, "its directory is not there; make it, or mount what it lies on") from None

    def __enter__(self) -> _Staged:
        return self

    def __exit__(self, *_: object) -> None:
        _unlink_quietly(self._temp)

    def link(self) -> bool:
        """True if the name was free, and is ours now."""
        claim = self._claim
        claim.may_exist = True
        try:
            os.link(self._temp, self._path)
        except FileExistsError:
            # The reply to our own first request may have been lost: nobody else has these bytes.
            claim.may_exist = self._semaphore._is_own(claim, _observe(self._path))
        except FileNotFoundError:
            claim.may_exist = False  # A sweep removed the staged file.
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            claim.may_exist = self._semaphore._can_link = False
        return claim.may_exist


class _Guarded:
    """Runs a block under the guard; without one where there is none to be had."""

    def __init__(self, path: str, is_local: bool) -> None:
        self._path = path
        self._is_local = is_local
        self._guard: Optional[_GuardFile] = None

    def __enter__(self) -> bool:
        if not self._is_local:
            return False
        try:
            self._guard = _GuardFile(self._path)
        except OSError as error:
            # A full disk prevents no release: no other process can create the guard either.
            if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
                return False
            raise
        try:
            self._guard.lock()
        except BaseException:
            self._guard.__exit__()
            raise
        return True

    def __exit__(self, *_: object) -> None:
        if self._guard is not None:
            self._guard.__exit__()


def _check_path(path: object) -> None:
    if not isinstance(path, str):
        raise TypeError("the path of a semaphore must be a string")
    if path.strip() == "":
        raise _invalid(path, "it is empty")
    if "\0" in path:
        raise _invalid(path, "it contains a NUL character")
    if ".." in re.split(r"[\\/]", path):
        raise _invalid(path, "it contains `..`; if that is meant, resolve it to an absolute path first")


def _invalid(path: str, why: str) -> InvalidPath:
    return InvalidPath("%r cannot be a lock: %s." % (path[:200], why), path=path)


def _not_a_lock(path: str) -> InvalidPath:
    return InvalidPath("%s is not a lock: its contents are not a record. Nothing was removed; choose another path, or move it away." % path, path=path)


def _remove_moved(away: str, is_directory: bool) -> bool:
    """Removes a lock that was moved away, with its record and nothing else."""
    try:
        if is_directory:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(away, "owner"))
            os.rmdir(away)
        else:
            os.unlink(away)
        return True
    except OSError:
        return False


def _file_age(path: str, lock_path: str) -> float:
    """Seconds since `path` was written, compared with a file created now: one clock stamps both. 0 if that fails."""
    probe = _temp_path(lock_path)
    try:
        _write_new(probe, b"", sync=False, mode=0o600)
        return max(0.0, os.stat(probe).st_mtime - os.stat(path).st_mtime)
    except OSError:
        return 0.0
    finally:
        _unlink_quietly(probe)


def _started_at() -> float:
    """When this process began, by the wall clock."""
    own = _process_entry(os.getpid())
    if own is None:
        return time.time()
    since_boot = time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    return time.time() - (since_boot - int(own.start) * _TICK_S)
