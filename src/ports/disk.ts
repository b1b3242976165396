// The file system as Holdfast sees it: few operations, each with a contract, so that a simulated
// disk can stand in for a real one.
//
// What holds for every method:
// - Paths are absolute, with forward slashes on every platform. A Disk belongs to one mount: a root
//   and what lies below it.
// - Failure rejects with the error that `diskError` makes: a HoldfastError with the POSIX name of the
//   failure as `errno`.
// - Errors of the device and of the network (EIO, ESTALE, ETIMEDOUT, …: `isOutcomeUnknown`) say
//   "outcome unknown": it may have happened.
// - A crash of this process during a call leaves the operation done or not done, except where a
//   method says otherwise.
// - Nothing survives a power cut before the sync that its contract names.

export interface FileStat {
  readonly kind: "file" | "directory" | "other";
  readonly size: number;
  /**
   * As stamped by the server on a network file system; its granularity is the file system's own.
   */
  readonly mtimeMs: number;
  /**
   * Device and inode: two files of one kernel are the same file if and only if theirs are equal.
   * Opaque text, because inode numbers exceed 2^53.
   */
  readonly identity: string;
  /** Of the file system that it is on, as this kernel sees it: a rename works only within one. */
  readonly device: string;
  /** Permission bits, with the sticky bit; absent where there are none (Windows, memory). */
  readonly mode?: number;
}

/** What the operating system tells about the mount that a path is on. */
export interface Volume {
  /** "unknown" is treated as a network mount wherever safety depends on it. */
  readonly kind: "local" | "network" | "unknown";
  /** "ext4", "nfs4", "cifs", … as the operating system names it. */
  readonly type: string;
  readonly mountOptions: readonly string[];
}

export interface CreateFileOptions {
  readonly sync: boolean;
  readonly mode?: number | undefined;
  /**
   * Instead of `mode`: exactly the users that may write in its directory may read and write it,
   * whatever the umask says. Owner and group are those of the directory, as far as this user may
   * give them. Nothing on Windows.
   */
  readonly isForDirectory?: boolean | undefined;
}

export interface OpenFileOptions {
  /**
   * Only with "read", for a large file that is read from end to end: through the page cache and with read-ahead,
   * also on NFS. There the server may lend the file to this machine, and another machine that links, renames or
   * removes it may wait until this one answers. So only for files that no protocol links or renames any more.
   */
  readonly isBulk?: boolean | undefined;
}

export interface Disk {
  /** Found once, when the disk was opened. */
  readonly volume: Volume;

  /**
   * Creates a file that did not exist, writes `bytes`, syncs them when `sync` is set, and closes
   * it. EEXIST when the name is taken. Not atomic: others may see the file empty or in part, and a
   * crash may leave it so. Its entry is durable only after `syncDirectory` of the parent. `mode`
   * (default 0o666) is what the umask leaves of it. Windows: CREATE_NEW, which has no mode; sync is
   * FlushFileBuffers.
   */
  createFile(path: string, bytes: Uint8Array, options: CreateFileOptions): Promise<void>;

  /**
   * The whole content as of the open; EFBIG when it is larger than `bytesMax`, EISDIR, ENXIO for a
   * FIFO and the like. ENOENT may be an old answer on a network mount.
   */
  readFile(path: string, bytesMax: number): Promise<Uint8Array>;

  /**
   * Whether the name is there now. True is the file system's own answer: on a network mount it is
   * found by an open, which is always asked of the server (NFS close-to-open, SMB create). False
   * may come from a cache of absent names and proves nothing; nor does true, if a process of this
   * machine has the file open (measured on NFS and SMB): a share is asked by a link. Other failures
   * reject.
   */
  canOpen(path: string): Promise<boolean>;

  /**
   * "read": existing, for reading. "write": existing, for reading and writing. "create": made by
   * this call (EEXIST otherwise), for both. Windows: opened with all share modes, so that others
   * may rename and delete it.
   */
  open(path: string, mode: "read" | "write" | "create", options?: OpenFileOptions): Promise<DiskFile>;

  /**
   * Gives an existing file a second name, if that name is free: EEXIST otherwise, ENOENT when
   * `from` or the directory of `to` is gone. Atomic on every file system that has it: of many
   * callers one wins. After a lost reply it can say EEXIST for its own success. On NFS it can
   * succeed in a directory that another client has moved away. Windows: CreateHardLink (NTFS, SMB;
   * not FAT).
   */
  link(from: string, to: string): Promise<void>;

  /**
   * Moves a name, replacing a file (or an empty directory by a directory) at `to` in one step.
   * ENOENT, EEXIST or ENOTEMPTY, EXDEV. After a lost reply it can say ENOENT for its own success.
   * Windows: MoveFileEx with replace; an open file there fails with EPERM, EBUSY or EACCES, which
   * is retried for a bounded time.
   */
  rename(from: string, to: string): Promise<void>;

  /** Removes a name; ENOENT when it is gone. Open handles stay valid. Windows: as for rename. */
  unlink(path: string): Promise<void>;

  /** Makes one directory; EEXIST, ENOENT when the parent is missing. */
  mkdir(path: string): Promise<void>;

  /** Removes an empty directory; ENOTEMPTY, ENOENT. */
  rmdir(path: string): Promise<void>;

  /**
   * The names in a directory, in no order. May be an old answer on a network mount. TOO_LARGE
   * beyond a million names.
   */
  list(path: string): Promise<string[]>;

  /**
   * At most `count` of the names in a directory, in no order, without reading the others: for a directory that
   * may be long. Fewer only when there are no more. May be an old answer on a network mount.
   */
  listSome(path: string, count: number): Promise<string[]>;

  /** May be an old answer on a network mount: never a look that safety depends on. */
  stat(path: string): Promise<FileStat>;

  /** The same, or undefined when nothing is there (ENOENT, ENOTDIR) or it went away meanwhile (ESTALE). */
  findStat(path: string): Promise<FileStat | undefined>;

  /**
   * What is there now: a `stat` that the file system itself answers. On a network mount the
   * directory is opened first and then the path, and an absence is believed only when the client
   * was made to look the name up anew. ENOENT, ENOTDIR. One gap remains: on SMB a file that a
   * process of this machine has open may be shown for as long as that lasts, though another machine
   * has removed it.
   */
  look(path: string): Promise<FileStat>;

  /**
   * Whether this user may rename what is at `path` into another directory, or to this name, as far as
   * the operating system tells beforehand: directories have to be writable, also the one that is
   * renamed itself, because its parent changes; in one with the sticky bit only owners may. Absent
   * where there are no users.
   */
  mayRename?(path: string): Promise<boolean>;

  /**
   * Where an existing path leads when every symbolic link on the way is followed: absolute, without
   * a link in it. ENOENT when it or what a link points to is missing, ELOOP when links lead in a
   * circle, ENOTDIR. May be an old answer on a network mount, and is one as soon as a link changes.
   */
  realPath(path: string): Promise<string>;

  /**
   * Whether a symbolic link is on the way from `root` to `path` below it, which may be missing, or
   * is `path` itself. May be an old answer on a network mount.
   */
  hasLink(root: string, path: string): Promise<boolean>;

  /**
   * What a symbolic link says, as it says it: often relative to its own directory. EINVAL when it
   * is something else, ENOENT when missing.
   */
  readLink(path: string): Promise<string>;

  /**
   * Makes the entries of this directory durable: additions, removals, renames in and out. Windows
   * has no such call: NTFS journals its metadata in order, so there this does nothing (and `doctor`
   * says so).
   */
  syncDirectory(path: string): Promise<void>;
}

export interface SyncOptions {
  /**
   * A hint: true when nothing else of this process waits to be done. Then the sync may block, if
   * that is quicker.
   */
  readonly isIdle?: (() => boolean) | undefined;
}

/**
 * An open file. Offsets are explicit: a position that the kernel keeps is one more thing that two
 * threads can disagree about.
 */
export interface DiskFile {
  /** At most `length` bytes from `offset`; fewer at the end of the file. */
  read(offset: number, length: number): Promise<Uint8Array>;
  /**
   * All of `bytes` at `offset`. Not atomic, not durable; on a network mount it may reach the server
   * much later.
   */
  write(offset: number, bytes: Uint8Array): Promise<void>;
  /**
   * Makes all earlier writes through this handle durable. After a failure the data may be lost
   * though a second call says otherwise: close the file and read it again.
   */
  sync(options?: SyncOptions): Promise<void>;
  stat(): Promise<FileStat>;
  /** Idempotent. */
  close(): Promise<void>;
}
