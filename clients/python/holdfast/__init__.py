"""Holdfast in Python: semaphore files and the hand-off, in one file without dependencies.

This file is all there is: install the package, or copy the file. It follows the pages docs/format/semaphore.md and
docs/format/handoff.md and works beside the Node library on the same folder. Python 3.9 or later.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import io
import itertools
import json
import math
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
import warnings
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from types import TracebackType
from typing import IO, Any, Callable, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, NoReturn, Optional, Set, Tuple, Type, Union

if sys.platform != "win32":
    import fcntl

__version__ = "0.2.0"

__all__ = [
    "ClaimLost",
    "Corrupt",
    "Delivery",
    "Fail",
    "Handoff",
    "HoldfastError",
    "InvalidName",
    "InvalidPath",
    "LockLost",
    "LockRecord",
    "LockTimeout",
    "NewerFormat",
    "NotABox",
    "NotHeld",
    "OutcomeUnknown",
    "PayloadMismatch",
    "Published",
    "Semaphore",
    "SemaphoreHold",
    "SemaphoreStatus",
    "TicketFile",
    "TooLarge",
    "UnsupportedDisk",
    "format_lock_file",
    "parse_lock_file",
]

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


class NotABox(HoldfastError):
    """The directory has no hand-off box. Usually the share is not mounted."""

    code = "NOT_A_STORE"


class NewerFormat(HoldfastError):
    """A newer version of Holdfast wrote this."""

    code = "NEWER_FORMAT"


class Corrupt(HoldfastError):
    """A file is damaged: its checksum or its structure is wrong."""

    code = "CORRUPT"


class InvalidName(HoldfastError):
    """A file of this name cannot be handed over, because some file system refuses it."""

    code = "INVALID_NAME"


class TooLarge(HoldfastError):
    """A value is larger than the format allows."""

    code = "TOO_LARGE"


class ClaimLost(HoldfastError):
    """The ticket is claimed by this delivery no more. Nothing was committed."""

    code = "CLAIM_LOST"


class PayloadMismatch(HoldfastError):
    """A file of a ticket is not what its manifest says."""

    code = "PAYLOAD_MISMATCH"


class OutcomeUnknown(HoldfastError):
    """It was done, but may not outlast a power cut. Repeating it with the same key is safe."""

    code = "OUTCOME_UNKNOWN"


class Fail(Exception):
    """Raise it in a handler of `Handoff.work`: the ticket becomes a dead letter with this reason."""


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


def _is_holder_running(record: LockRecord, is_local: bool) -> Optional[bool]:
    """True if the process of a record lives, None if this machine cannot tell. `is_local`: the record was found on a local disk."""
    here = _this_host()
    boot, space = record.boot or "", record.space or ""
    if record.token is None or space != here.space or boot.startswith(_UNKNOWN) or here.boot.startswith(_UNKNOWN):
        return None
    is_running = _is_running(record.pid, record.start or "")
    if boot == here.boot:
        return is_running
    # Its kernel is this one, under another id, or is gone.
    return False if not is_running and record.volume == "local" and is_local else None


# File systems.

# A file system that is in no list may be anything: it does not count as local.
_LOCAL_TYPES: FrozenSet[str] = frozenset(
    "ext2 ext3 ext4 xfs btrfs bcachefs zfs f2fs jfs reiserfs nilfs2 ufs apfs hfs hfsplus ntfs ntfs3 vfat msdos exfat tmpfs ramfs overlay".split()
)
_NETWORK_TYPES: FrozenSet[str] = frozenset(
    (
        "nfs nfs3 nfs4 cifs smb2 smb3 smbfs afs afpfs coda ncpfs ceph lustre gpfs beegfs orangefs glusterfs gfs2 ocfs2 webdav 9p virtiofs "
        "vboxsf vmhgfs fuse.sshfs fuse.glusterfs fuse.ceph fuse.ceph-fuse fuse.s3fs fuse.rclone fuse.vmhgfs-fuse"
    ).split()
)


def _is_local(directory: str) -> bool:
    """True if the directory is known to be on a disk of this machine."""
    real = os.path.realpath(directory)
    kind = _volume_kind(real)
    return kind == "local" or (kind == "unknown" and _is_vouched_for(real))


def _volume_kind(real: str) -> str:
    """`local`, `network` or `unknown`."""
    try:
        if sys.platform.startswith("linux"):
            found = _linux_type(real, _read_text("/proc/self/mountinfo"))
            return "local" if found in _LOCAL_TYPES else "network" if found in _NETWORK_TYPES else "unknown"
        if sys.platform == "darwin":
            listed = subprocess.run(["/sbin/mount"], capture_output=True, check=True, timeout=10).stdout.decode(errors="replace")
            return _mac_kind(real, listed)
        if sys.platform == "win32":
            return "network" if real.startswith("\\\\") else "local" if _is_local_on_windows(real) else "unknown"
    except (OSError, subprocess.SubprocessError):
        pass
    return "unknown"


def _is_vouched_for(real: str) -> bool:
    """True below a folder of HOLDFAST_LOCAL: its user states that no other machine can reach it."""
    for folder in filter(None, os.environ.get("HOLDFAST_LOCAL", "").split(os.pathsep)):
        top = os.path.realpath(folder)
        if real == top or real.startswith(top.rstrip(os.sep) + os.sep):
            return True
    return False


def _is_local_on_windows(real: str) -> bool:
    """Written from the documentation: NTFS or ReFS on a fixed drive, and no volume that is mounted on a folder."""
    import ctypes

    kernel: Any = getattr(ctypes, "windll").kernel32
    root, system = ctypes.create_unicode_buffer(261), ctypes.create_unicode_buffer(261)
    if not kernel.GetVolumePathNameW(real, root, 261) or not re.fullmatch(r"[A-Za-z]:\\", root.value):
        return False
    if kernel.GetDriveTypeW(root.value) != 3:  # DRIVE_FIXED
        return False
    return bool(kernel.GetVolumeInformationW(root.value, None, 0, None, None, None, system, 261)) and system.value.lower() in ("ntfs", "refs")


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


def _mac_kind(real: str, listed: str) -> str:
    """Not run on a Mac. The kernel's own flag must agree: a disk image has a local type without it."""
    length, found = 0, "unknown"
    for line in listed.splitlines():
        match = re.search(r" on (/.*) \(([^()]*)\)$", line)
        if match and _contains(match[1], real) and len(match[1]) >= length:
            kind, *options = match[2].split(", ")
            length = len(match[1])
            found = "network" if kind in _NETWORK_TYPES else "local" if kind in _LOCAL_TYPES and "local" in options else "unknown"
    return found


def _sync(descriptor: int) -> None:
    if sys.platform == "darwin":
        # There fsync leaves the data in the cache of the drive.
        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def _write_new(path: str, data: bytes, *, sync: bool = True, mode: int = 0o666) -> None:
    """Creates a file. One that could not be written whole is removed again."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            if sync:
                _sync(descriptor)
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
    _patiently(lambda: os.unlink(path))


def _rename(source: str, target: str) -> None:
    _patiently(lambda: os.rename(source, target))


def _patiently(change: Callable[[], None]) -> None:
    """On Windows a file cannot be moved or removed while another program reads it."""
    for left in range(40 if sys.platform == "win32" else 0, -1, -1):
        try:
            return change()
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
    # Written from the documentation. A byte far beyond the content, because a locked range cannot be read there.
    def _lock_range(descriptor: int, lock: bool) -> bool:
        import ctypes
        import msvcrt

        class Overlapped(ctypes.Structure):
            _fields_ = [("internal", ctypes.c_size_t), ("high", ctypes.c_size_t), ("offset", ctypes.c_uint32), ("offset_high", ctypes.c_uint32), ("event", ctypes.c_void_p)]

        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        handle = ctypes.c_void_p(msvcrt.get_osfhandle(descriptor))
        at = Overlapped(0, 0, _LOCKED_BYTE & 0xFFFFFFFF, _LOCKED_BYTE >> 32, None)
        if lock:  # LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY
            is_done = kernel.LockFileEx(handle, 3, 0, 1, 0, ctypes.byref(at))
        else:
            is_done = kernel.UnlockFileEx(handle, 0, 1, 0, ctypes.byref(at))
        if is_done:
            return True
        if ctypes.get_last_error() in (33, 997):  # ERROR_LOCK_VIOLATION, ERROR_IO_PENDING
            return False
        raise ctypes.WinError(ctypes.get_last_error())

    def _try_lock(descriptor: int) -> bool:
        return _lock_range(descriptor, True)

    def _unlock(descriptor: int) -> None:
        _lock_range(descriptor, False)


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
                descriptor = os.open(self._path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
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
    if sys.platform == "win32":
        return
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
        is_running = _is_holder_running(found.record, self._local)
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
            if guard is not None:
                guard.__exit__()
                guard = None
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
            _rename(path, away)
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
            is_running = None if found.record is None else _is_holder_running(found.record, self._local)
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


# Records: one line of JSON with a checksum, docs/format/record.md.

_RECORD_BYTES_MAX = 4 * 1024 * 1024
_TAIL = re.compile(rb',"crc":"([0-9a-f]{8})"\}\n\Z')


def _record(kind: str, body: Mapping[str, Any]) -> bytes:
    envelope = {"kind": kind, "format": 1, "by": "python " + __version__, "body": body}
    head = json.dumps(envelope, ensure_ascii=False, separators=(",", ":"), allow_nan=False)[:-1].encode()
    data = head + b',"crc":"%08x"}\n' % zlib.crc32(head)
    if len(data) > _RECORD_BYTES_MAX:
        raise TooLarge("A %s record of %d bytes is over the limit of %d bytes." % (kind, len(data), _RECORD_BYTES_MAX), limit=_RECORD_BYTES_MAX, actual=len(data))
    return data


def _no_constant(text: str) -> NoReturn:
    raise ValueError("%s is not JSON" % text)


def _body_of(kind: str, data: bytes, path: str, newest: int = 1) -> Dict[str, Any]:
    """The body of a record. Raises Corrupt for what is torn, altered or foreign, and NewerFormat."""

    def corrupt(why: str) -> Corrupt:
        return Corrupt("%s is not a valid %s record: %s. Restore it from a backup, or move it away." % (path, kind, why), path=path)

    crc = _TAIL.search(data)
    if crc is None:
        raise corrupt("it does not end in a checksum, so it is torn or foreign")
    if b"%08x" % zlib.crc32(data[: crc.start()]) != crc[1]:
        raise corrupt("its checksum does not match its content")
    try:
        envelope = json.loads(data.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise corrupt("it is not JSON") from None
    if not isinstance(envelope, dict):
        raise corrupt("it is not a record")
    number = envelope.get("format")
    # First: a newer release may have changed everything else.
    if isinstance(number, (int, float)) and number > newest:
        message = "%s is a %s record of format %s, written by Holdfast %s. Upgrade this client."
        raise NewerFormat(message % (path, kind, number, envelope.get("by")), path=path, written_by=envelope.get("by"))
    if envelope.get("kind") != kind:
        raise corrupt("it is a %r record" % (envelope.get("kind"),))
    body = envelope.get("body")
    if not isinstance(body, dict):
        raise corrupt("its body is not an object")
    return body


def _read_file(path: str, most: int = _RECORD_BYTES_MAX) -> bytes:
    """A regular file of at most `most` bytes. Follows no link, and waits for no writer of a pipe."""
    try:
        descriptor = os.open(path, _READ_FLAGS | getattr(os, "O_NOFOLLOW", 0))
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
            raise
        raise Corrupt("%s is a link or a socket, not a file. Move it away." % path, path=path) from None
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IsADirectoryError(errno.EISDIR, "is a directory", path)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise Corrupt("%s is not a file. Move it away." % path, path=path)
        data = file.read(most + 1)
    if len(data) > most:
        raise Corrupt("%s is larger than any record. Move it away." % path, path=path)
    return data


def _sync_directory(path: str) -> None:
    if sys.platform == "win32":
        return  # Windows has no sync of a directory.
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)


def _names_in(directory: str, most: int = sys.maxsize) -> List[str]:
    """At most `most` names, sorted; none if it is not a directory."""
    try:
        with os.scandir(directory) as entries:
            return sorted(entry.name for entry in itertools.islice(entries, most))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, getattr(errno, "ESTALE", errno.ENOENT)):
            return []
        raise


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def _iso(ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=ms)).strftime("%Y-%m-%dT%H:%M:%S.") + "%03dZ" % (ms % 1000)


def _day(ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=ms)).strftime("%Y%m%d")


def _minute(ms: int) -> str:
    return "%010d" % (ms // 60_000)


def _time_of(text: str) -> datetime:
    match = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6})\d*)?Z", text, re.ASCII)
    if match is None:
        raise ValueError("not a time")
    moment = datetime.strptime(match[1], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    return moment + timedelta(microseconds=int((match[2] or "").ljust(6, "0")))


def _utf8(text: str) -> bytes:
    """As JavaScript encodes it: half of a pair is a replacement character."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text).encode()


# The name of a ticket carries the state that changes, so each step is one rename.


class _Name(NamedTuple):
    id: str
    claims: int = 0
    forgiven: int = 0
    replays: int = 0
    #: When a delayed or parked ticket is due, in milliseconds.
    due: Optional[int] = None
    #: A ticket of a group: its place in its lane.
    place: Optional[int] = None

    def plain(self) -> str:
        forgiven = "~%d" % self.forgiven if self.forgiven else ""
        replays = "@%d" % self.replays if self.replays else ""
        return "%s-%d%s%s.json" % (self.id, self.claims, forgiven, replays)

    def at(self, due: int) -> str:
        return "%016d-%s" % (due, self.plain())

    @property
    def attempt(self) -> int:
        return self.claims - self.forgiven


_ID = "[%s]{36}" % _DIGITS
_NAME = re.compile(r"(?:([0-9]{16})-(?:([0-9]{16})-)?)?(%s)-([0-9]{1,9})(?:~([0-9]{1,9}))?(?:@([0-9]{1,9}))?\.json" % _ID)
_CLAIMS_MAX = 999_999_999


def _find_name(text: str) -> Optional[_Name]:
    """None for the file of another program, which is left alone."""
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    due, place, identity, claims, forgiven, replays = match.groups()
    name = _Name(identity, int(claims), int(forgiven or 0), int(replays or 0), None if due is None else int(due), None if place is None else int(place))
    # Each name has one spelling.
    return name if name.forgiven <= name.claims and text.endswith(name.plain()) and len(text) == len(name.plain()) + 17 * sum(each is not None for each in (due, place)) else None


def new_id() -> str:
    """Ten digits of the time, for people, and 26 of 128 random bits."""
    ms = int(time.time() * 1000)
    return "".join(_DIGITS[ms >> 5 * place & 31] for place in range(9, -1, -1)) + _random_name()


# Tickets.

_INLINE_BYTES_MAX = 64 * 1024
_FILES_MAX = 10_000
_TEXT_LENGTH_MAX = 1024
_NESTING_MAX = 200
_DURATION_S_MAX = 1e11
_CHUNK = 1024 * 1024

#: A file to publish: text, bytes, or the path of a file on this machine.
Body = Union[str, bytes, "os.PathLike[str]"]


@dataclass(frozen=True)
class TicketFile:
    """A file of a ticket."""

    name: str
    size: int
    sha256: str
    content_type: Optional[str] = None
    records: Optional[int] = None


@dataclass(frozen=True)
class Published:
    """The answer of `publish`. With `duplicate`, another ticket has the key, and `id` is its id."""

    id: str
    key: str
    duplicate: bool = False


@dataclass(frozen=True)
class _Ticket:
    id: str
    key: str
    files: Tuple[TicketFile, ...]
    created_at: datetime
    producer: Mapping[str, Any]
    priority: int
    group: Optional[str]
    not_before: Optional[datetime]
    expires_at: Optional[datetime]
    meta: Any
    inline: Optional[Mapping[str, str]]


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _ticket_of(body: Mapping[str, Any]) -> _Ticket:
    """Raises ValueError or another error of a wrong type for what is no ticket."""

    def text(value: object) -> str:
        if not isinstance(value, str):
            raise ValueError("not a text")
        return value

    def count(value: Any) -> int:
        if not _is_count(value):
            raise ValueError("not a count")
        return int(value)

    def file(value: Mapping[str, Any]) -> TicketFile:
        name = text(value["name"])
        # Workers write files of this name: it must not lead out of their directory.
        if name in ("", ".", "..") or re.search(r"[/\\\0]", name):
            raise ValueError("not the name of a file")
        if not re.fullmatch("[0-9a-f]{64}", text(value["sha256"])):
            raise ValueError("not a SHA-256")
        kind, records = value.get("contentType"), value.get("records")
        return TicketFile(name, count(value["size"]), value["sha256"], None if kind is None else text(kind), None if records is None else count(records))

    def moment(value: object) -> Optional[datetime]:
        return None if value is None else _time_of(text(value))

    files = tuple(map(file, body["files"]))
    inline = body.get("inline")
    if not re.fullmatch(_ID, text(body["id"])) or count(body["priority"]) > 9:
        raise ValueError("not an id or a priority")
    return _Ticket(
        id=body["id"],
        key=text(body["key"]),
        files=files,
        created_at=_time_of(text(body["createdAt"])),
        producer=dict(body["producer"]),
        priority=body["priority"],
        group=None if body.get("group") is None else text(body["group"]),
        not_before=moment(body.get("notBefore")),
        expires_at=moment(body.get("expiresAt")),
        meta=body.get("meta"),
        inline=None if inline is None else {each.name: text(inline[each.name]) for each in files},
    )


def _read_ticket(path: str) -> _Ticket:
    body = _body_of("ticket", _read_file(path), path)
    try:
        return _ticket_of(body)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise Corrupt("%s is not a valid ticket record: its body is invalid. Restore it from a backup, or move it away." % path, path=path) from None


def _check_file_name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError("the name of a file must be a string")

    def invalid(why: str) -> InvalidName:
        return InvalidName("The file name %r cannot be used: %s." % (name[:200], why), name=name)

    if name in ("", ".", ".."):
        raise invalid("it is not a file name")
    if re.search("[\ud800-\udfff]", name) or any(unicodedata.category(each) == "Cc" for each in name) or re.search(r'[\\/:*?"<>|]', name):
        raise invalid("it has a character that some file systems refuse")
    if len(name.encode()) > 200:
        raise invalid("it is longer than 200 bytes")
    if name[-1] in ". ":
        raise invalid("Windows drops a dot or a space at its end")
    if re.fullmatch("(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\\..*)?", name, re.IGNORECASE):
        raise invalid("Windows reserves it for a device")
    if unicodedata.normalize("NFC", name) != name:
        raise invalid("it is not in the Unicode form NFC")
    return name


def _check_text(what: str, text: Optional[str]) -> None:
    if text is not None and (not isinstance(text, str) or not 0 < len(text.encode("utf-16-le", "surrogatepass")) <= 2 * _TEXT_LENGTH_MAX or re.search("[\ud800-\udfff]", text)):
        raise ValueError("%s must be a text of 1 to %d characters" % (what, _TEXT_LENGTH_MAX))


def _check_json(what: str, value: object, depth: int = 0) -> None:
    """Refuses what JSON cannot hold, or a program in JavaScript would read as something else."""
    if depth > _NESTING_MAX:
        raise ValueError("%s is nested over %d levels deep" % (what, _NESTING_MAX))
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        if re.search("[\ud800-\udfff]", value):
            raise ValueError("%s has half of a surrogate pair" % what)
    elif isinstance(value, int):
        if abs(value) >= 2**53:
            raise ValueError("%s has the number %d, which is another one in JavaScript; use a text" % (what, value))
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("%s has the number %r, which JSON does not have" % (what, value))
    elif isinstance(value, (list, tuple)):
        for each in value:
            _check_json(what, each, depth + 1)
    elif isinstance(value, dict):
        for key, each in value.items():
            if not isinstance(key, str):
                raise TypeError("%s has the key %r, and JSON has only texts" % (what, key))
            _check_json(what, key)
            _check_json(what, each, depth + 1)
    else:
        raise TypeError("%s has a %s, which JSON does not have" % (what, type(value).__name__))


def _check_seconds(what: str, seconds: float, least: float = 0.0) -> None:
    if not isinstance(seconds, (int, float)) or not least <= seconds <= _DURATION_S_MAX:
        raise ValueError("%s must be a number of seconds from %g" % (what, least))


# The box.


class Handoff:
    """A hand-off box, docs/format/handoff.md. Holdfast creates it (`holdfast handoff put`, `openHandoff`); this opens it.

    Raises NotABox if the directory has no box: usually the share is not mounted. Raises NewerFormat for a box that this
    client does not know. Threads may share one object.
    """

    def __init__(self, directory: "str | os.PathLike[str]", *, name: str = "python") -> None:
        self.directory = os.path.abspath(os.fspath(directory))
        _check_text("name", name)
        self._producer = name
        self._pid = os.getpid()
        self._session_path = ""
        self._turn = threading.Lock()
        #: Directories whose names this process has synced. Those of payloads are not among them: there are many.
        self._known: Set[str] = set()
        self._waiting: List[Tuple[str, _Name]] = []
        self._listed_at = float("-inf")
        self._due_at = float("-inf")
        self.check()
        self._is_local = _is_local(self.directory)
        self._sweep()

    @property
    def _mutex(self) -> Any:
        """A forked child begins without the session of its parent."""
        if self._pid != os.getpid():
            self._pid, self._turn, self._session_path = os.getpid(), threading.Lock(), ""
        return self._turn

    def check(self) -> None:
        """Raises NotABox if the box is not there any more, Corrupt, or NewerFormat."""
        path = self._path("box.json")
        try:
            # Format 2 differs in keys/ only.
            body = _body_of("box", _read_file(path), path, newest=2)
        except (FileNotFoundError, NotADirectoryError):
            raise NotABox("There is no box in %s: is the share mounted?" % self.directory, path=self.directory) from None
        except IsADirectoryError:
            raise Corrupt("%s is a directory. Restore it from a backup, or move it away." % path, path=path) from None
        if body.get("lanes") != 64:
            raise Corrupt("%s is not a valid box record: it has not 64 lanes." % path, path=path)

    # Publish.

    def publish(
        self,
        files: Mapping[str, Body],
        *,
        key: Optional[str] = None,
        group: Optional[str] = None,
        priority: int = 5,
        delay: float = 0.0,
        expires: Optional[float] = None,
        meta: Any = None,
        content_types: Optional[Mapping[str, str]] = None,
    ) -> Published:
        """Publishes files as one ticket. It is durable when this returns.

        `key`: of all tickets with one key, one is done; the others end as duplicates. `group`: its tickets are worked in
        order by programs of Holdfast, which give it its place. `priority`: 0 is delivered first, 9 last. `delay`,
        `expires`: seconds. `meta`: JSON for the consumer. Raises InvalidName, TooLarge, ValueError and TypeError before
        anything is written, and OutcomeUnknown if the ticket was published but perhaps not durably: publish it again with
        the same key.
        """
        bodies = self._check_publication(files, content_types or {}, key, group, priority, delay, expires)
        _check_json("meta", meta)
        self.check()
        if key is not None:
            owner = self._find_owner(key)
            if owner is not None:
                return Published(owner, key, True)
        identity = new_id()
        session = self._session()
        staged = os.path.join(session, identity + ".json")
        payload = self._path("data", identity[-2:], identity)
        self._make(self._path("delayed") if group is not None or delay > 0 else self._path("incoming", str(priority)))
        inline: Optional[Dict[str, bytes]] = None
        is_published = False
        try:
            if self._is_small(bodies):
                inline = {name: _bytes_of(body) for name, body in bodies.items()}
            if inline is not None and sum(map(len, inline.values())) <= _INLINE_BYTES_MAX:
                manifest = [_describe(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in inline.items()]
            else:
                # First a name that identifies the payload, should this process die.
                _write_new(staged, b"", sync=True)
                _sync_directory(session)
                bodies = bodies if inline is None else dict(inline)
                inline = None
                manifest = self._write_payload(payload, bodies)
            for each in manifest:
                if each["name"] in (content_types or {}):
                    each["contentType"] = (content_types or {})[each["name"]]
            now = self._now()
            body: Dict[str, Any] = {"id": identity, "key": identity if key is None else key, "isKeyed": False, "files": manifest, "createdAt": _iso(now)}
            body["producer"] = {"host": socket.gethostname(), "pid": os.getpid(), "name": self._producer}
            if group is not None:
                body["group"] = group
            body["priority"] = priority
            due = now + math.ceil(delay * 1000)
            if delay > 0:
                body["notBefore"] = _iso(due)
            if expires is not None:
                body["expiresAt"] = _iso(now + math.ceil(expires * 1000))
            if meta is not None:
                body["meta"] = meta
            if inline is not None:
                body["inline"] = {name: base64.b64encode(data).decode() for name, data in inline.items()}
            _write(staged, _record("ticket", body))
            name = _Name(identity)
            # A ticket of a group gets its place from a worker of Holdfast, when it is due.
            if delay > 0 or group is not None:
                target, text = self._path("delayed", _minute(due)), name.at(due)
            else:
                target, text = self._path("incoming", str(priority), _minute(now)), name.plain()
            if not self._move(staged, target, text):
                raise FileNotFoundError(errno.ENOENT, "was removed by another program", staged)
            is_published = True
        finally:
            if not is_published:
                self._discard(staged, payload)
        try:
            _sync_directory(target)
            _sync_directory(os.path.dirname(target))
        except OSError as error:
            # A worker may have claimed it by now, so it cannot be withdrawn.
            raise OutcomeUnknown("The ticket %s was published, but may not outlast a power cut: %s. Publish it again with the same key." % (identity, error), ids=(identity,)) from error
        return Published(identity, body["key"])

    def _check_publication(self, files: Mapping[str, Body], content_types: Mapping[str, str], key: Optional[str], group: Optional[str], priority: int, delay: float, expires: Optional[float]) -> Dict[str, Body]:
        bodies = dict(files)
        if not bodies:
            raise TypeError("a ticket hands over at least one file")
        if len(bodies) > _FILES_MAX:
            raise TooLarge("A ticket has at most %d files, not %d." % (_FILES_MAX, len(bodies)), limit=_FILES_MAX, actual=len(bodies))
        folded: Set[str] = set()
        for name, body in bodies.items():
            _check_file_name(name)
            if name.lower() in folded:
                raise InvalidName("The file name %r cannot be used: another file has the same name but for upper and lower case." % name, name=name)
            folded.add(name.lower())
            if not isinstance(body, (str, bytes, os.PathLike)):
                raise TypeError("the body of %r must be a text, bytes, or a path" % name)
        for name, kind in content_types.items():
            _check_text("content_types of %r" % name, kind)
            if name not in bodies:
                raise TypeError("content_types names %r, which is not a file of this ticket" % name)
        _check_text("key", key)
        _check_text("group", group)
        if not _is_count(priority) or priority > 9:
            raise ValueError("priority must be a whole number from 0 to 9")
        _check_seconds("delay", delay)
        if expires is not None:
            _check_seconds("expires", expires)
        return bodies

    def _is_small(self, bodies: Mapping[str, Body]) -> bool:
        return sum(os.stat(body).st_size if isinstance(body, os.PathLike) else len(body) for body in bodies.values()) <= _INLINE_BYTES_MAX

    def _write_payload(self, directory: str, bodies: Mapping[str, Body]) -> List[Dict[str, Any]]:
        self._make(os.path.dirname(directory))
        os.mkdir(directory)
        manifest: List[Dict[str, Any]] = []
        for name, body in bodies.items():
            digest, size = hashlib.sha256(), 0
            with open(os.path.join(directory, name), "xb") as file:
                with open(body, "rb") if isinstance(body, os.PathLike) else io.BytesIO(_bytes_of(body)) as source:
                    for chunk in iter(lambda: source.read(_CHUNK), b""):
                        file.write(chunk)
                        digest.update(chunk)
                        size += len(chunk)
                file.flush()
                _sync(file.fileno())
            manifest.append(_describe(name, size, digest.hexdigest()))
        _sync_directory(directory)
        _sync_directory(os.path.dirname(directory))
        return manifest

    def _discard(self, staged: str, payload: str) -> None:
        """Nothing has been published. What remains after a failure is removed once this process has ended."""
        with suppress(OSError):
            _remove_tree(payload)
        _unlink_quietly(staged)

    def _find_owner(self, key: str) -> Optional[str]:
        """The id of the ticket that has this key, as far as this process can see. The ledger decides in any case."""
        digest = hashlib.sha256(_utf8(key)).hexdigest()
        ledger = self._path("ledger", digest[:3], digest)
        for room, kind, newest in (("keys", "ticket", 2), ("ledger", "ledger", 1)):
            path = self._path(room, digest[:3], digest)
            try:
                entry = self._find_entry(path, kind, key, 0, newest)
            except Corrupt:
                continue  # One damaged entry costs only itself: the ticket is published, and may be a duplicate.
            if entry is not None and isinstance(entry.get("id"), str):
                # Another process may have linked it a moment ago. This answer builds on it.
                with suppress(FileNotFoundError):
                    _sync_directory(os.path.dirname(path))
                    _sync_directory(os.path.dirname(os.path.dirname(path)))
                    if os.path.lexists(path) or os.path.lexists(ledger):
                        return str(entry["id"])
        return None

    def _find_entry(self, path: str, kind: str, key: str, replays: int, newest: int = 1) -> Optional[Dict[str, Any]]:
        """The entry of a key in keys/ or ledger/. Several may share a file."""
        try:
            body = _body_of(kind, _read_file(path), path, newest)
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            raise Corrupt("%s is not a directory. Move it away." % os.path.dirname(path), path=path) from None
        except OSError as error:
            # Windows refuses to open a directory.
            if not (isinstance(error, IsADirectoryError) or (isinstance(error, PermissionError) and os.path.isdir(path))):
                raise
            inside = os.path.join(path, "record.json")
            try:
                body = dict(_body_of(kind, _read_file(inside), inside, newest), isDirectory=True)
            except (FileNotFoundError, IsADirectoryError):
                raise Corrupt("%s has no record. Restore it from a backup, or move it away." % path, path=path) from None
        entries = body.get("entries", [body])
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict) and entry.get("key") == key and (kind != "ledger" or entry.get("replays", 0) == replays):
                return entry
        raise Corrupt("%s is the record of another key: it was copied or renamed. Move it away." % path, path=path)

    # Take.

    def take(self, *, hold: float = 600.0, wait: float = 0.0, attempts: int = 5) -> Optional[Delivery]:
        """Claims the next ticket without a group; None if there is none, also after `wait` seconds.

        The claim lasts for `hold` seconds; `Delivery.heartbeat` extends it. Then the ticket returns to the queue, also if
        this process dies. A ticket that was claimed more than `attempts` times becomes a dead letter. Every file was
        checked against its SHA-256 when this returns. Raises NotABox if the share is gone.
        """
        _check_seconds("hold", hold, 0.05)
        _check_seconds("wait", wait)
        if not _is_count(attempts) or attempts < 1:
            raise ValueError("attempts must be a whole number from 1")
        deadline = time.monotonic() + wait
        while True:
            delivery = self._take_now(hold, attempts)
            left = deadline - time.monotonic()
            if delivery is not None or left <= 0:
                return delivery
            time.sleep(min(left, random.uniform(0.05, 0.15)))

    def work(
        self,
        handler: Callable[[Delivery], Any],
        *,
        hold: float = 60.0,
        attempts: int = 5,
        until_empty: bool = False,
        stop: Optional[threading.Event] = None,
    ) -> int:
        """Works tickets one after the other, until `stop` is set or with `until_empty` nothing can be claimed now.

        What the handler returns is the result that is committed. If it raises Fail, the ticket becomes a dead letter; any
        other exception returns it for a later attempt. A thread extends the claim meanwhile. Returns how many tickets the
        handler got.
        """
        worked = 0
        while stop is None or not stop.is_set():
            delivery = self.take(hold=hold, wait=0.0 if until_empty else 0.5, attempts=attempts)
            if delivery is None:
                if until_empty:
                    break
                continue
            worked += 1
            try:
                with delivery.kept():
                    try:
                        result = handler(delivery)
                    except Fail as failure:
                        delivery.fail(str(failure))
                        continue
                    except Exception as error:
                        if not delivery.is_settled:
                            delivery.retry("%s: %s" % (type(error).__name__, error))
                        continue
                    if not delivery.is_settled:
                        delivery.ack(result)
            except ClaimLost:
                continue  # Another worker has it. Its result counts.
            except BaseException:
                if not delivery.is_settled:
                    with suppress(OSError, HoldfastError):
                        delivery.release()
                raise
        return worked

    def _take_now(self, hold: float, attempts: int) -> Optional[Delivery]:
        self.check()
        now = self._now()
        if time.monotonic() - self._due_at >= 0.25:
            self._due_at = time.monotonic()
            self._return_due(now)
        while not os.path.lexists(self._path("pause.json")):
            claimed = self._claim(hold)
            if claimed is None:
                return None
            delivery = self._open(claimed[0], claimed[1], hold, attempts)
            if delivery is not None:
                return delivery
        return None

    def _claim(self, hold: float) -> Optional[Tuple[str, _Name]]:
        parked = self._make(self._path("parked"))
        for _ in range(2):
            while True:
                with self._mutex:
                    if time.monotonic() - self._listed_at > 0.1:
                        self._waiting = []
                    if not self._waiting:
                        break
                    path, name = self._waiting.pop(0)
                taken = name._replace(claims=min(name.claims + 1, _CLAIMS_MAX))
                claimed = os.path.join(parked, taken.at(self._now() + math.ceil(hold * 1000)))
                try:
                    # The one step that decides. A failure means: not ours, whatever exists now.
                    os.rename(path, claimed)
                except OSError as error:
                    # But what would refuse every ticket is not an empty queue. Windows refuses a file that is being read.
                    is_refused = error.errno in (errno.EACCES, errno.EPERM) and sys.platform != "win32"
                    if is_refused or error.errno in (errno.ENOSPC, errno.EROFS, getattr(errno, "EDQUOT", errno.ENOSPC)):
                        raise
                    with self._mutex:
                        # Others claim the same names. Continue elsewhere.
                        random.shuffle(self._waiting)
                    continue
                self._wait_for_scan()
                return claimed, taken
            if not self._list():
                return None
        return None

    def _list(self) -> bool:
        """Lists some of the tickets that wait: the most urgent ones, and of these the oldest."""
        now = self._now()
        found: List[Tuple[str, _Name]] = []
        for priority in range(10):
            for minute in _names_in(self._path("incoming", str(priority))):
                if not re.fullmatch("[0-9]{10}", minute):
                    continue
                directory = self._path("incoming", str(priority), minute)
                count = 256
                while True:
                    names = _names_in(directory, count)
                    tickets = [(os.path.join(directory, text), name) for text in names for name in [_find_name(text)] if name is not None and name.due is None]
                    if tickets or len(names) < count:
                        break
                    count *= 16  # Files of other programs.
                if not names and (int(minute) + 3) * 60_000 < now:
                    with suppress(OSError):
                        os.rmdir(directory)
                found += tickets
                if len(found) >= 256:
                    break
            if len(found) >= 256:
                break
        with self._mutex:
            self._waiting = found
            self._listed_at = time.monotonic()
        return bool(found)

    def _wait_for_scan(self) -> None:
        """While a backup lists the tickets, a claimed ticket stays claimed."""
        path = self._path("scan.json")
        seen: Tuple[object, float] = (None, 0.0)
        while self._is_local and os.path.lexists(path):
            try:
                scan = _body_of("scan", _read_file(path), path)
            except FileNotFoundError:
                continue
            except HoldfastError:
                scan = {}
            if seen[1] == 0.0 or seen[0] != scan.get("id"):
                limit = scan["ms"] if _is_count(scan.get("ms")) else 60_000
                seen = (scan.get("id"), time.monotonic() + 2 * limit / 1000)
            if time.monotonic() > seen[1]:
                _unlink_quietly(path)
            time.sleep(0.01)

    def _open(self, path: str, name: _Name, hold: float, attempts: int) -> Optional[Delivery]:
        """Checks a claimed ticket. None if there is nothing to do with it."""
        delivery = Delivery(self, path, name, hold, attempts)
        try:
            try:
                ticket = _read_ticket(path)
            except (Corrupt, NewerFormat, IsADirectoryError) as error:
                delivery._fail("fail", str(error))
                return None
            delivery._ticket = ticket
            try:
                committed = self._find_entry(delivery._ledger_path(), "ledger", ticket.key, name.replays)
            except (Corrupt, NewerFormat) as error:
                # Nobody can tell whether it was done. It stays claimed until it is due, and costs only itself.
                warnings.warn("the ticket %s waits: %s" % (name.id, error), RuntimeWarning, stacklevel=2)
                return None
            if committed is not None:
                delivery._archive(committed)
                return None
            if name.attempt > attempts:
                delivery._fail("lost", "%d attempts ended without an answer." % (name.attempt - 1))
                return None
            if ticket.expires_at is not None and (ticket.expires_at - _EPOCH) / timedelta(milliseconds=1) <= self._now():
                delivery._fail("expired", "It was not delivered before %s." % ticket.expires_at.isoformat())
                return None
            try:
                delivery._check_files()
            except PayloadMismatch as error:
                delivery._fail("mismatch", str(error))
                return None
            return delivery
        except (FileNotFoundError, ClaimLost):
            return None  # Its time is over already.

    def _return_due(self, now: int) -> None:
        """Delayed tickets enter the queue, and claims whose worker died or was too slow return to it."""
        minutes = [minute for minute in _names_in(self._path("delayed")) if re.fullmatch("[0-9]{10}", minute) and int(minute) * 60_000 <= now]
        for directory, is_parked in [(self._path("parked"), True), *((self._path("delayed", minute), False) for minute in minutes)]:
            for text in _names_in(directory):
                name = _find_name(text)
                if name is None or name.due is None or name.due > now or name.place is not None:
                    continue
                path = os.path.join(directory, text)
                try:
                    ticket = _read_ticket(path)
                except (OSError, HoldfastError):
                    continue  # Moved on; or damaged, and then a worker of Holdfast sees to it.
                if ticket.group is not None:
                    continue  # Groups have an order: a worker of Holdfast moves them to their place.
                if not self._enter(path, name, ticket.priority) or not is_parked:
                    continue
                # After the move: before it, another process may have continued with the claim.
                with suppress(OSError, HoldfastError):
                    if self._find_entry(self._ledger(ticket.key, name.replays), "ledger", ticket.key, name.replays) is None:
                        self._note(name, "", "lost", "It was parked until %s, and no process settled it." % _iso(name.due))
            if not is_parked and (int(os.path.basename(directory)) + 3) * 60_000 < now:
                with suppress(OSError):
                    os.rmdir(directory)

    def _enter(self, path: str, name: _Name, priority: int) -> bool:
        """Into the queue, durable. False if the ticket is gone."""
        self._make(self._path("incoming", str(priority)))
        directory = self._path("incoming", str(priority), _minute(self._now()))
        if not self._move(path, directory, name._replace(due=None).plain()):
            return False
        self._sync_moved(directory)
        return True

    # What all steps share.

    def _path(self, *parts: str) -> str:
        return os.path.join(self.directory, *parts)

    def _make(self, directory: str) -> str:
        """Creates a directory that stays, durable. Another process may have created it a moment ago, without its sync."""
        if directory not in self._known or not os.path.isdir(directory):
            parent = os.path.dirname(directory)
            if parent != self.directory:
                self._make(parent)
            with suppress(FileExistsError):
                os.mkdir(directory)
            _sync_directory(parent)
            self._known.add(directory)
        return directory

    def _ledger(self, key: str, replays: int) -> str:
        digest = hashlib.sha256(_utf8(key) + (b"\n%d" % replays if replays else b"")).hexdigest()
        return self._path("ledger", digest[:3], digest)

    def _now(self) -> int:
        """Milliseconds by the clock of the file server: the stamp of a file that is made now."""
        if self._is_local:
            return time.time_ns() // 1_000_000
        path = os.path.join(self._session(), _random_name() + ".clock")
        _write_new(path, b"", sync=False)
        try:
            return os.stat(path).st_mtime_ns // 1_000_000
        finally:
            _unlink_quietly(path)

    def _move(self, source: str, directory: str, name: str) -> bool:
        """Into a directory of a minute or a day, which may be removed at any moment. False if `source` is gone."""
        target = os.path.join(directory, name)
        for left in range(9, -1, -1):
            try:
                _rename(source, target)
                return True
            except FileNotFoundError:
                if not os.path.lexists(source):
                    # Nobody else creates this name: after a lost reply, the rename was ours.
                    return os.path.lexists(target)
                if left == 0:
                    raise
                os.makedirs(directory, exist_ok=True)
        return False

    def _sync_moved(self, directory: str) -> None:
        with suppress(FileNotFoundError):  # A worker that has emptied it may have removed it.
            _sync_directory(directory)
        _sync_directory(os.path.dirname(directory))

    def _put_once(self, path: str, data: bytes) -> bool:
        """Publishes a record under a name that is won once. False if another one has it."""
        self._make(os.path.dirname(path))
        temp = os.path.join(self._session(), _random_name() + ".tmp")
        _write_new(temp, data, sync=True)
        try:
            try:
                os.link(temp, path)
                is_won = True
            except FileExistsError:
                # Equal: the reply to our own first request was lost.
                try:
                    is_won = not os.path.isdir(path) and _read_file(path) == data
                except (HoldfastError, OSError):
                    is_won = False
            except OSError as error:
                if error.errno in _NO_LINKS:
                    raise UnsupportedDisk("%s has no hard links, which a result needs." % self.directory, path=self.directory) from error
                raise
        finally:
            _unlink_quietly(temp)
        _sync_directory(os.path.dirname(path))
        return is_won

    def _note(self, name: _Name, holder: str, outcome: str, reason: str, due: Optional[int] = None) -> None:
        """Precedes the move of the ticket, so that every dead letter has a reason. The first note of a claim stays."""
        body: Dict[str, Any] = {"attempt": name.attempt, "at": _iso(self._now()), "outcome": outcome, "reason": _utf8(reason[:4000]).decode(), "holder": holder}
        if due is not None:
            body["dueMs"] = due
        self._put_once(self._path("notes", name.id[-3:], "%s-%d.json" % (name.id, name.claims)), _record("note", body))

    def _session(self) -> str:
        """The directory in foreign/ in which this process writes what is not yet published."""
        with self._mutex:
            if self._session_path == "" or not os.path.isdir(self._session_path):
                path = os.path.join(self._make(self._path("foreign")), "python-" + _random_name())
                os.mkdir(path)
                here = _this_host()
                volume = "local" if self._is_local else None
                owner = LockRecord(here.pid, max(0, int(time.time())), self._producer, _random_name(), here.name, here.boot, here.space, here.start, volume)
                _write_new(os.path.join(path, "owner"), format_lock_file(owner), sync=True)
                _sync_directory(path)
                _sync_directory(os.path.dirname(path))
                self._session_path = path
            return self._session_path

    def _sweep(self) -> None:
        """Removes what dead processes of this machine had not published."""
        for text in _names_in(self._path("foreign")):
            session = self._path("foreign", text)
            if not re.fullmatch("python-[%s]{26}" % _DIGITS, text):
                continue
            with suppress(OSError, HoldfastError):
                mark = os.path.join(session, "owner")
                owner = parse_lock_file(_read_file(mark, _LOCK_BYTES_MAX)) if os.path.lexists(mark) else None
                names = _names_in(session)
                if owner is None:
                    # It ended while it created the directory: the mark comes before everything else.
                    is_over = names in ([], ["owner"]) and _file_age(session, session) > _ORPHAN_S
                else:
                    is_over = _is_holder_running(owner, self._is_local) is False
                if not is_over:
                    continue
                for name in names:
                    # It is still here, so it was not published, and its process publishes nothing any more.
                    identity = name[:-5]
                    if name.endswith(".json") and re.fullmatch(_ID, identity):
                        with suppress(FileNotFoundError):
                            _remove_tree(self._path("data", identity[-2:], identity))
                # The mark last, so that the next process can continue.
                for name in sorted(names, key="owner".__eq__):
                    os.unlink(os.path.join(session, name))
                os.rmdir(session)

    def close(self) -> None:
        """Removes the directory of this process. Everything that was published or claimed stays."""
        with suppress(OSError):
            if self._session_path and self._pid == os.getpid():
                if _names_in(self._session_path) == ["owner"]:
                    os.unlink(os.path.join(self._session_path, "owner"))
                    os.rmdir(self._session_path)

    def __enter__(self) -> Handoff:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Delivery:
    """A claimed ticket. Settle it with `ack`, `retry`, `fail` or `release`.

    Otherwise it returns to the queue when its time is over. Each of these raises ClaimLost if that has happened: then
    nothing was committed, and another worker has the ticket.
    """

    def __init__(self, box: Handoff, path: str, name: _Name, hold: float, attempts: int) -> None:
        self._box = box
        self._path = path
        self._name = name
        self._hold = hold
        self._attempts = attempts
        self._mutex = threading.RLock()
        self._beat_at = time.monotonic()
        self._holder = "python %s %d %s" % (socket.gethostname(), os.getpid(), _random_name())
        self._ticket: Optional[_Ticket] = None
        #: True once it was acknowledged, returned or failed.
        self.is_settled = False

    @property
    def id(self) -> str:
        """The id of the ticket."""
        return self._name.id

    @property
    def key(self) -> str:
        """The idempotency key; the id if the producer chose none."""
        return self._manifest.key

    @property
    def attempt(self) -> int:
        """1 for the first attempt."""
        return self._name.attempt

    @property
    def files(self) -> Tuple[TicketFile, ...]:
        """The files of the ticket."""
        return self._manifest.files

    @property
    def meta(self) -> Any:
        """The JSON that the producer passed, or None."""
        return self._manifest.meta

    @property
    def created_at(self) -> datetime:
        """When the ticket was published, by the clock of the file server."""
        return self._manifest.created_at

    @property
    def producer(self) -> Mapping[str, Any]:
        """`host`, `pid` and perhaps `name` of the producer."""
        return self._manifest.producer

    @property
    def priority(self) -> int:
        """0 is delivered first, 9 last."""
        return self._manifest.priority

    @property
    def expires_at(self) -> Optional[datetime]:
        """The ticket is not delivered after this time."""
        return self._manifest.expires_at

    @property
    def _manifest(self) -> _Ticket:
        if self._ticket is None:
            raise Corrupt("the ticket %s cannot be read" % self.id, id=self.id)
        return self._ticket

    def read(self, name: str) -> bytes:
        """The content of a file. Raises PayloadMismatch if it is not what the manifest says, and KeyError."""
        with self._source(self._file(name)) as source:
            return b"".join(source)

    def text(self, name: str) -> str:
        """The content of a file of UTF-8."""
        return self.read(name).decode()

    def save_to(self, directory: "str | os.PathLike[str]") -> Dict[str, str]:
        """Writes all files into a directory; their paths by name. Replaces nothing. Raises InvalidName for a name that could mean another file."""
        paths: Dict[str, str] = {}
        for file in self.files:
            path = os.path.join(os.fspath(directory), _check_file_name(file.name))
            with open(path, "xb") as target, self._source(file) as source:
                for chunk in source:
                    target.write(chunk)
            paths[file.name] = path
        return paths

    def _file(self, name: str) -> TicketFile:
        for file in self.files:
            if file.name == name:
                return file
        raise KeyError(name)

    @contextmanager
    def _source(self, file: TicketFile) -> Iterator[Iterator[bytes]]:
        """The content in pieces; after the last one the SHA-256 is compared."""
        mismatch = PayloadMismatch("The file %r is not what its manifest says." % file.name, id=self.id, file=file.name)

        def checked(source: IO[bytes]) -> Iterator[bytes]:
            digest, size = hashlib.sha256(), 0
            for chunk in iter(lambda: source.read(_CHUNK), b""):
                digest.update(chunk)
                size += len(chunk)
                if size > file.size:
                    break
                yield chunk
            if (size, digest.hexdigest()) != (file.size, file.sha256):
                raise mismatch

        if self._manifest.inline is not None:
            try:
                data = base64.b64decode(self._manifest.inline[file.name], validate=True)
            except ValueError:
                raise mismatch from None
            with io.BytesIO(data) as inline:
                yield checked(inline)
            return
        path = self._box._path("data", self.id[-2:], self.id, file.name)
        try:
            # No link is followed, and no pipe is waited for.
            descriptor = os.open(path, _READ_FLAGS | getattr(os, "O_NOFOLLOW", 0))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMLINK, errno.ENXIO):
                raise mismatch from None
            raise
        with os.fdopen(descriptor, "rb") if stat.S_ISREG(os.fstat(descriptor).st_mode) else _closed(descriptor, mismatch) as beside:
            yield checked(beside)

    def _check_files(self) -> None:
        for file in self.files:
            with self._source(file) as source:
                for _ in source:
                    if time.monotonic() - self._beat_at > self._hold / 4:
                        self.heartbeat()

    def heartbeat(self, hold: Optional[float] = None) -> None:
        """Extends the claim by `hold` seconds from now (default: as in `take`). Raises ClaimLost."""
        if hold is not None:
            _check_seconds("hold", hold, 0.05)
        with self._mutex:
            self._must_be_open()
            self._hold = self._hold if hold is None else hold
            self._park(self._box._now() + math.ceil(self._hold * 1000))

    def _park(self, due: int) -> None:
        directory = self._box._path("parked")
        path = os.path.join(directory, self._name.at(due))
        if path == self._path:
            if not os.path.lexists(path):
                raise self._lost()
        elif not self._box._move(self._path, directory, self._name.at(due)):
            raise self._lost()
        self._path = path
        self._beat_at = time.monotonic()

    @contextmanager
    def kept(self) -> Iterator[Delivery]:
        """Extends the claim in a thread until the block ends. The next step of a lost claim raises ClaimLost."""
        over = threading.Event()

        def keep() -> None:
            while not over.wait(self._hold / 4):
                with self._mutex:
                    if self.is_settled:
                        return
                    try:
                        self.heartbeat()
                    except ClaimLost:
                        return
                    except OSError:
                        continue  # Perhaps an outage: the claim lasts for three quarters of its time yet.

        thread = threading.Thread(target=keep, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            over.set()
            thread.join()

    def ack(self, result: Any = None) -> bool:
        """Commits the result under the key of the ticket, once for all workers, and archives the ticket.

        False if another ticket with the same key was committed before: this one is archived as a duplicate, and its
        result does not count. Durable when it returns. May be called again after an OSError.
        """
        _check_json("result", result)
        with self._mutex:
            # What was returned is not committed.
            self.heartbeat()
            name, ticket = self._name, self._manifest
            body: Dict[str, Any] = {"key": ticket.key, "id": name.id, "claims": name.claims, "replays": name.replays, "holder": self._holder, "at": _iso(self._box._now())}
            if result is not None:
                body["result"] = result
            path = self._ledger_path()
            entry = dict(body, outputs=[], sent=[])
            if not self._box._put_once(path, _record("ledger", entry)):
                found = self._box._find_entry(path, "ledger", ticket.key, name.replays)
                if found is None:
                    raise Corrupt("%s was removed while it was read." % path, path=path)
                is_own = (found.get("claims"), found.get("holder")) == (name.claims, self._holder)
                if found.get("id") == name.id and not is_own:
                    # Another claim of this ticket was first: our time was over before the work was.
                    self._archive(found)
                    raise self._lost()
                entry = found
            self._archive(entry)
            return bool(entry["id"] == name.id)

    def retry(self, reason: str = "", delay: Optional[float] = None) -> bool:
        """Returns the ticket for another attempt after `delay` seconds (default: 2, 4, 8 … at most 300).

        False if this was the last attempt: then it becomes a dead letter.
        """
        with self._mutex:
            if self.attempt >= self._attempts:
                self.fail(reason)
                return False
            seconds = min(2.0 ** min(self.attempt, 20), 300.0) if delay is None else delay
            _check_seconds("delay", seconds)
            self._must_be_open()
            due = self._box._now() + math.ceil(seconds * 1000)
            self._box._note(self._name, self._holder, "retry", reason, due)
            self._box._make(self._box._path("delayed"))
            self._leave(self._box._path("delayed", _minute(due)), self._name.at(due))
            return True

    def fail(self, reason: str) -> None:
        """Makes the ticket a dead letter, with this reason for people. Durable when it returns."""
        self._fail("fail", reason)

    def release(self) -> None:
        """Returns the ticket to the queue at once. The attempt does not count."""
        with self._mutex:
            self._must_be_open()
            name = self._name._replace(forgiven=self._name.forgiven + 1)
            if not self._box._enter(self._path, name, self._manifest.priority):
                raise self._lost()
            self.is_settled = True

    def _fail(self, outcome: str, reason: str) -> None:
        with self._mutex:
            self._must_be_open()
            self._box._note(self._name, self._holder, outcome, reason)
            self._box._make(self._box._path("error"))
            self._leave(self._box._path("error", _day(self._box._now())), self._name.plain())

    def _leave(self, directory: str, name: str) -> None:
        if not self._box._move(self._path, directory, name):
            raise self._lost()
        self.is_settled = True
        self._box._sync_moved(directory)

    def _archive(self, entry: Mapping[str, Any]) -> None:
        """The key is committed. A ticket whose result has outputs or sends others is left to a worker of Holdfast."""
        if entry.get("isDirectory") or entry.get("sent") != []:
            self.is_settled = True
            return
        plain = self._name.plain()
        self._box._make(self._box._path("archive"))
        # Not synced: the ledger is authoritative.
        self._box._move(self._path, self._box._path("archive", _day(self._box._now())), plain if entry.get("id") == self.id else plain[:-5] + "-duplicate.json")
        self.is_settled = True

    def _ledger_path(self) -> str:
        return self._box._ledger(self._manifest.key, self._name.replays)

    def _must_be_open(self) -> None:
        if self.is_settled:
            raise self._lost()

    def _lost(self) -> ClaimLost:
        message = "The ticket %s is not claimed by this delivery any more: it was settled, or its time was over and it returned to the queue."
        return ClaimLost(message % self.id, id=self.id, attempt=self.attempt)

    def __repr__(self) -> str:
        return "<Delivery %s, attempt %d>" % (self.id, self.attempt)


def _closed(descriptor: int, error: Exception) -> NoReturn:
    os.close(descriptor)
    raise error


def _bytes_of(body: Body) -> bytes:
    if isinstance(body, os.PathLike):
        with open(body, "rb") as file:
            return file.read()
    return body.encode() if isinstance(body, str) else body


def _describe(name: str, size: int, sha256: str) -> Dict[str, Any]:
    return {"name": name, "size": size, "sha256": sha256}


def _write(path: str, data: bytes) -> None:
    """Fills a file that nobody else reads yet, and syncs it."""
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        _sync(file.fileno())


def _remove_tree(directory: str) -> None:
    """A payload: files without directories."""
    for name in _names_in(directory):
        os.unlink(os.path.join(directory, name))
    os.rmdir(directory)
