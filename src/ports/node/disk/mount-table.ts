// Parses the mount tables of Linux and macOS, and knows which types of file system other machines
// can see. Pure.
import type { Volume } from "../../disk.ts";

export interface Mount {
  /** The ids of the mount and of the mount that contains its mount point; only where the table has them (Linux). */
  readonly id?: string;
  readonly parentId?: string;
  readonly mountPoint: string;
  readonly type: string;
  readonly options: readonly string[];
}

/** Returns the mount that `realPath` (absolute, without symbolic links) is on. */
export function volumeAt(realPath: string, mounts: readonly Mount[]): Volume | undefined {
  const above = mounts.filter(({ mountPoint }) => contains(mountPoint, realPath));
  const found = above.some(({ parentId }) => parentId !== undefined) ? reachedBy(above) : longestOf(above);
  return found && { kind: kindOfType(found.type), type: found.type, mountOptions: found.options };
}

/**
 * Descends from mount to mount as the kernel does: among the mounts inside one, the nearest is
 * entered first and hides the rest. Neither length nor order suffices: a mount on a directory hides
 * earlier mounts below it, and a mount can be moved.
 */
function reachedBy(above: readonly Mount[]): Mount | undefined {
  const ids = new Set(above.map(({ id }) => id));
  // Mounts above a chroot are not in the table.
  let next = nearestOf(above.filter(({ id, parentId }) => id === parentId || !ids.has(parentId)));
  let reached: Mount | undefined;
  // Each mount is entered once: a table that changed while it was read may contain a cycle.
  for (const entered = new Set<Mount>(); next !== undefined && !entered.has(next);) {
    reached = next;
    entered.add(reached);
    const { id } = reached;
    next = nearestOf(above.filter((mount) => mount.parentId === id && mount.id !== id));
  }
  return reached;
}

function nearestOf(mounts: readonly Mount[]): Mount | undefined {
  let nearest: Mount | undefined;
  for (const mount of mounts)
    if (nearest === undefined || mount.mountPoint.length < nearest.mountPoint.length) nearest = mount;
  return nearest;
}

function longestOf(mounts: readonly Mount[]): Mount | undefined {
  let longest: Mount | undefined;
  for (const mount of mounts) {
    // Of two mounts on one point the later hides the earlier: for example an automount and the
    // share that it mounted.
    if (mount.mountPoint.length >= (longest?.mountPoint.length ?? 0)) longest = mount;
  }
  return longest;
}

/**
 * /proc/self/mountinfo: `36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/sda
 * rw,errors=continue`.
 */
export function parseMountinfo(text: string): Mount[] {
  const mounts: Mount[] = [];
  for (const line of text.split("\n")) {
    // Any number of optional fields end with a lone "-". Fields are escaped, so no other " - " can
    // occur.
    const [before, after] = line.split(" - ");
    const [id, parentId, , , mountPoint, mountOptions] = before?.split(" ") ?? [];
    const [type, , superOptions] = after?.split(" ") ?? [];
    if (id === undefined || parentId === undefined || mountPoint === undefined || type === undefined) continue;
    const options = [mountOptions, superOptions].flatMap((list) => list?.split(",") ?? []);
    mounts.push({ id, parentId, mountPoint: unescape(mountPoint), type, options: [...new Set(options)] });
  }
  return mounts;
}

/**
 * `mount` on macOS: `//me@server/share on /Volumes/share (smbfs, nodev, nosuid, mounted by me)`.
 */
export function parseMountOutput(text: string): Mount[] {
  const mounts: Mount[] = [];
  for (const line of text.split("\n")) {
    const [, mountPoint, list] = / on (\/.*) \(([^()]*)\)$/.exec(line) ?? [];
    const [type, ...options] = list?.split(", ") ?? [];
    if (mountPoint !== undefined && type !== undefined) mounts.push({ mountPoint, type, options });
  }
  return mounts;
}

/** A type in neither list is "unknown": a FUSE file system can be anything, and a wrong "local" loses writes. */
export function kindOfType(type: string): Volume["kind"] {
  if (localTypes.has(type)) return "local";
  return networkTypes.has(type) ? "network" : "unknown";
}

const localTypes: ReadonlySet<string> = new Set(
  (
    "ext2 ext3 ext4 xfs btrfs bcachefs zfs f2fs jfs reiserfs nilfs2 ufs apfs hfs hfsplus ntfs ntfs3 vfat msdos exfat " +
    "tmpfs ramfs overlay"
  ).split(" "),
);

// Shared disks (gfs2, ocfs2) and folders that a host lends to its guests (9p, virtiofs, vboxsf)
// also have more than one kernel behind them.
const networkTypes: ReadonlySet<string> = new Set(
  (
    "nfs nfs3 nfs4 cifs smb2 smb3 smbfs afs afpfs coda ncpfs ceph lustre gpfs beegfs orangefs glusterfs gfs2 ocfs2 webdav 9p virtiofs " +
    "vboxsf vmhgfs fuse.sshfs fuse.glusterfs fuse.ceph fuse.ceph-fuse fuse.s3fs fuse.rclone fuse.vmhgfs-fuse"
  ).split(" "),
);

function contains(mountPoint: string, path: string): boolean {
  return mountPoint === "/" || path === mountPoint || path.startsWith(`${mountPoint}/`);
}

function unescape(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
