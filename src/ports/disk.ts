// The file system as Holdfast uses it: few operations, each with a contract, so that a simulated
// disk can replace a real one.
//
// Every method follows these rules:
// - Paths are absolute, with forward slashes on every platform. A Disk belongs to one mount: a root
//   and everything below it.
// - A failure rejects with the error that `diskError` makes: a HoldfastError with the POSIX name of
//   the failure as `errno`.
// - On Windows a call waits for about a second while another program has the file open without
//   sharing it, then rejects with RESOURCE_BUSY. Errors have the names of POSIX there too.
// - Errors of the device and of the network (EIO, ESTALE, ETIMEDOUT, …: `isOutcomeUnknown`) mean
//   "outcome unknown": the operation may have happened.
// - A crash of this process during a call leaves the operation done or not done, unless a method
//   states otherwise.
// - Nothing survives a power cut before the sync that its contract names.

/** Metadata of a file or directory. */
export interface FileStat {
  /** The kind of the entry. A symbolic link is followed. */
  readonly kind: "file" | "directory" | "other";
  /** Size in bytes. */
  readonly size: number;
  /** When the content last changed, as the server stamped it; the granularity is that of the file system. */
  readonly mtimeMs: number;
  /**
   * When content, mode or names last changed. Unlike `mtimeMs`, no program can set it back. A
   * network mount changes it for reasons of its own.
   */
  readonly ctimeMs: number;
  /**
   * Device and inode: two files of one kernel are the same file if and only if these are equal.
   * Opaque text, because inode numbers exceed 2^53.
   */
  readonly identity: string;
  /** The file system, as this kernel identifies it: a rename works only within one. */
  readonly device: string;
  /** Permission bits, with the sticky bit. Absent where there are none (Windows, memory). */
  readonly mode?: number;
}

/** The mount of a path, as the operating system describes it. */
export interface Volume {
  /** `unknown` is treated as a network mount wherever safety depends on it. */
  readonly kind: "local" | "network" | "unknown";
  /** The type, as the operating system names it: "ext4", "nfs4", "cifs", … */
  readonly type: string;
  /** The mount options. */
  readonly mountOptions: readonly string[];
  /**
   * True if Windows decides which names are valid: it refuses `a?b` and `nul`, takes `a.` for `a`,
   * and knows a long name by a short one too (`LONGNA~1.TXT`). Default false.
   */
  readonly hasWindowsNames?: boolean;
}

/** Options of `createFile`. */
export interface CreateFileOptions {
  /** Syncs the content. */
  readonly sync: boolean;
  /** Mode of the file, less the umask. Default 0o666. */
  readonly mode?: number | undefined;
  /**
   * Instead of `mode`: exactly the users that may write in the directory may read and write the
   * file, whatever the umask is. Owner and group are those of the directory, as far as this user
   * may set them. No effect on Windows. Default false.
   */
  readonly isForDirectory?: boolean | undefined;
}

/** Options of `open`. */
export interface OpenFileOptions {
  /**
   * Only with `read`, for a large file that is read from end to end: uses the page cache and
   * read-ahead, also on NFS. There the server may lend the file to this machine, and a machine that
   * links, renames or removes it must wait. So use it only for files that no protocol links or
   * renames any more. Default false.
   */
  readonly isBulk?: boolean | undefined;
  /**
   * Only with `create`: mode of the file, less the umask; a file that nobody may write can be
   * written through this handle. Default 0o666.
   */
  readonly mode?: number | undefined;
}

/**
 * A file system: few operations, each with a contract, so that a simulated disk can replace a real
 * one. `diskContract` of "holdfast/testing" checks an implementation.
 *
 * Paths are absolute, with forward slashes. A failure rejects with a HoldfastError that has the
 * POSIX name of the failure as `errno`. Nothing survives a power cut before the sync that the
 * contract names.
 */
export interface Disk {
  /** The mount of this disk, determined once, when the disk was opened. */
  readonly volume: Volume;

  /**
   * Creates a file, writes `bytes`, syncs them if `sync` is set, and closes it. EEXIST if the name
   * exists. Not atomic: others may see the file empty or in part, and a crash may leave it so. The
   * entry is durable only after `syncDirectory` of the parent. Windows: CREATE_NEW, which has no
   * mode; sync is FlushFileBuffers.
   */
  createFile(path: string, bytes: Uint8Array, options: CreateFileOptions): Promise<void>;

  /**
   * Reads the whole content as of the open. EFBIG if it is larger than `bytesMax`, EISDIR, and
   * ENXIO for a FIFO and the like. ENOENT may be outdated on a network mount.
   */
  readFile(path: string, bytesMax: number): Promise<Uint8Array>;

  /**
   * Returns true if the name exists. On a network mount the answer comes from an open, which the
   * server always answers (NFS close-to-open, SMB create). False may come from a cache and proves
   * nothing; nor does true if a process of this machine has the file open (measured on NFS and
   * SMB). Other failures reject.
   */
  canOpen(path: string): Promise<boolean>;

  /**
   * Opens a file. `read`: an existing file, for reading. `write`: an existing file, for reading and
   * writing. `create`: a new file (EEXIST otherwise), for both. Windows: opened with all share
   * modes, so that others may rename and delete it.
   */
  open(path: string, mode: "read" | "write" | "create", options?: OpenFileOptions): Promise<DiskFile>;

  /**
   * Gives an existing file a second name, if that name is free. EEXIST otherwise; ENOENT if `from`
   * or the directory of `to` does not exist. Atomic: of many callers one wins. After a lost reply
   * it may fail with EEXIST for its own success. On NFS it can succeed in a directory that another
   * client has moved away. Windows: CreateHardLink (NTFS, SMB; not FAT).
   */
  link(from: string, to: string): Promise<void>;

  /**
   * Moves a name, and replaces a file (or an empty directory by a directory) at `to` in one step.
   * ENOENT, EEXIST or ENOTEMPTY, EXDEV. After a lost reply it may fail with ENOENT for its own
   * success. Windows: MoveFileEx with replace, which refuses open files and directories with
   * open files in them; an empty directory at `to` is removed first.
   */
  rename(from: string, to: string): Promise<void>;

  /** Removes a name. ENOENT if it does not exist. Open handles stay valid. */
  unlink(path: string): Promise<void>;

  /** Creates one directory. EEXIST; ENOENT if the parent does not exist. */
  mkdir(path: string): Promise<void>;

  /** Removes an empty directory. ENOTEMPTY, ENOENT. */
  rmdir(path: string): Promise<void>;

  /**
   * Lists the names in a directory, in no order. May be outdated on a network mount. TOO_LARGE
   * beyond a million names.
   */
  list(path: string): Promise<string[]>;

  /**
   * Lists at most `count` names of a directory, in no order, without reading the others. Returns
   * fewer only if there are no more. May be outdated on a network mount.
   */
  listSome(path: string, count: number): Promise<string[]>;

  /** Returns the metadata of a path. May be outdated on a network mount: safety must never depend on it. */
  stat(path: string): Promise<FileStat>;

  /**
   * Returns the metadata of a path, or undefined if it does not exist (ENOENT, ENOTDIR) or was
   * removed meanwhile (ESTALE). May be outdated like `stat`.
   */
  findStat(path: string): Promise<FileStat | undefined>;

  /**
   * Returns the current metadata of a path, from the file system itself. On a network mount it
   * opens the directory first and then the path, and believes an absence only after the client had
   * to look the name up again. ENOENT, ENOTDIR.
   *
   * One gap remains: on SMB a file that a process of this machine has open may be reported although
   * another machine has removed it.
   */
  look(path: string): Promise<FileStat>;

  /**
   * Returns true if this user may rename `path` into another directory, or another file to this
   * name, as far as the operating system tells beforehand. The directories must be writable, also a
   * renamed one itself, because its parent changes; in one with the sticky bit only owners may.
   * Absent where there are no users.
   */
  mayRename?(path: string): Promise<boolean>;

  /**
   * Resolves all symbolic links of an existing path. ENOENT if it or the target of a link does not
   * exist, ELOOP, ENOTDIR. May be outdated on a network mount.
   */
  realPath(path: string): Promise<string>;

  /**
   * Returns true if `path`, or a directory between `root` and `path`, is a symbolic link. `path`
   * need not exist. May be outdated on a network mount.
   */
  hasLink(root: string, path: string): Promise<boolean>;

  /**
   * Returns the target of a symbolic link as it is stored, often relative to its directory. EINVAL
   * if it is not a link, ENOENT.
   */
  readLink(path: string): Promise<string>;

  /**
   * Creates a symbolic link with this target, which need not exist. EEXIST; ENOENT if the directory
   * does not exist. Absent where there are no links.
   */
  symbolicLink?(target: string, path: string): Promise<void>;

  /**
   * Makes the entries of this directory durable: additions, removals, renames in and out. On a
   * local disk it returns the identity of the directory, if it is known. Windows has no such call,
   * so it does nothing there: NTFS journals its metadata in order.
   */
  syncDirectory(path: string): Promise<string | void>;
}

/** Options of `DiskFile.sync`. */
export interface SyncOptions {
  /**
   * A hint: returns false if this process has other work meanwhile. Then the sync does not block
   * the thread, even if that were faster.
   */
  readonly isIdle?: (() => boolean) | undefined;
}

/** An open file. Offsets are explicit. */
export interface DiskFile {
  /** Reads at most `length` bytes from `offset`; fewer at the end of the file. */
  read(offset: number, length: number): Promise<Uint8Array>;
  /**
   * Writes all of `bytes` at `offset`. Neither atomic nor durable; on a network mount it may reach
   * the server much later.
   */
  write(offset: number, bytes: Uint8Array): Promise<void>;
  /**
   * Makes all earlier writes through this handle durable. After a failure the data may be lost
   * although a second call succeeds: close the file and read it again.
   */
  sync(options?: SyncOptions): Promise<void>;
  /** Returns the metadata of the file. */
  stat(): Promise<FileStat>;
  /** Closes the file. Calling it again does nothing. */
  close(): Promise<void>;
}
